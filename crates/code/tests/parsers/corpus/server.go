// Package server answers requests.
//
// It is an example.
package server

import (
	"context"
	"fmt"
	h "net/http"

	_ "embed"
	. "errors"
)

// Limits of a server.
const (
	Small Limit = 1 << iota // the first
	Large
	_
	name, size = "server", 0x1F
)

// Limit is a number of requests.
type Limit uint32

var (
	// ErrClosed is returned after Close.
	ErrClosed          = New("closed")
	handlers, fallback = map[string]Handler{"/": index, "/x": {}}, func(int) error { return nil }
	empty              [3]struct{ a, b int }
)

type (
	// Handler answers one request.
	Handler interface {
		fmt.Stringer
		// Serve answers.
		Serve(ctx context.Context, args ...string) (n int, err error)
		~int | *Server
	}

	Server struct {
		h.Server
		*Options
		Name   string `json:"name"`
		routes []Route[string]
		done   chan<- struct{}
		in     <-chan func() error
		Hook   func(a, b int) (c string)
	}

	Route[T any] struct {
		Path  string
		Value T
		next  *Route[T]
	}

	Set[K comparable, V int | float64] map[K]V
	alias = Server
)

// New returns a server.
func NewServer(name string, options ...func(*Server)) (*Server, error) {
	s := &Server{Name: name, routes: []Route[string]{{Path: "/"}, {"a", "b", nil}}}
	for _, option := range options {
		option(s)
	}
	if s.Name == "" {
		return nil, fmt.Errorf("no name: %w", ErrClosed)
	} else if len(s.routes) > 1 && !s.ready() {
		s.Name += "x"
	}
	return s, nil
}

func (s *Server) Serve(ctx context.Context, args ...string) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	go s.watch(ctx)
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case f, ok := <-s.in:
			if !ok {
				continue
			}
			err = f()
		case s.done <- struct{}{}:
		default:
			goto end
		}
	}
end:
	switch x := any(s.Options).(type) {
	case nil:
		return 0, nil
	case *Options, func(int) string:
		x.(*Options).apply()
	default:
		fallthroughs(x)
	}
	return len(args), err
}

func (Server) ready() bool { return true }

func kind(n int) string {
	switch {
	case n < 0, n > 10:
		return "far"
	case n&1 == 0:
		fallthrough
	default:
		n++
	}
	switch y := n * 2; y {
	case 1:
		return `raw`
	}
	return string('a' + rune(n))
}

func Map[T, U any](in []T, f func(T) U) (out []U) {
	for i := 0; i < len(in); i++ {
		out = append(out, f(in[i]))
	}
	for range out {
	}
	for i := range 3 {
		_ = in[i:]
	}
	return out[:len(out):cap(out)]
}

func values() {
	numbers := []float64{1.5, .5, 1e-3, 0b1, 1_000, 2i}
	matrix := [...][2]int{{1, 2}, 1: {3, 4}}
	matrix[0][1], numbers[0] = 3, -numbers[1]
	p := &numbers[0]
	*p *= 2
	x, y := Map[int, string]([]int{1}, kind), (*Server)(nil)
	y.routes[0].next.Path, x = "z", append([]string(nil), x...)
	ch := make(chan int, 1)
	ch <- <-ch ^ 3&^1 | 4<<2>>1%5
	var z interface{ Close() error } = y
	if err := z.Close(); err != nil && (x == nil || !(len(x) <= 3)) {
		panic(err)
	}
	func() { fmt.Println(x, y, z) }()
	type local struct{ a int }
	_ = local{a: 1}.a
	_ = map[string][]func(){"a": {func() {}}}
}
