package com.example.library;

import java.util.*;
import java.util.function.Function;
import static java.util.Objects.requireNonNull;

/** A library of books. */
@Service(name = "library", tags = {"a", "b"}, nested = @Inner(1))
public abstract class Library<T extends Book & Comparable<T>, K> extends Base<T> implements Iterable<T>, AutoCloseable {
    /** How many. */
    private static final int LIMIT = 100, sizes[] = {1, 2, 3};
    protected volatile @Nullable Map<String, List<? super T>> index = new HashMap<>();
    static { register(Library.class); }
    { index.put("none", List.of()); }

    @Inject
    public Library(final Store store, String... names) throws ClosedException {
        super(store);
        this.names = requireNonNull(names);
    }

    Library() { this(null); }

    public abstract int size();

    @Override
    public <R> List<R> map(Function<? super T, ? extends R> each) {
        List<R> result = new ArrayList<>(size());
        for (T book : this) {
            result.add(each.apply(book));
        }
        for (int i = 0, n = result.size(); i < n; i++) result.set(i, null);
        return result;
    }

    synchronized void sort(Comparator<T> order) {
        outer:
        while (true) {
            do { step(); } while (!sorted());
            if (order == null) break outer; else if (done()) continue outer;
            else { return; }
        }
    }

    protected String describe(Object o, int[] counts, boolean... flags) {
        if (o instanceof Book b && b.title() != null) return b.title().trim();
        if (!(o instanceof final String s)) { throw new IllegalArgumentException("no " + o); }
        String kind = switch (o) {
            case Novel n when n.pages() > 100 -> "long";
            case Poem(String title, var lines) -> title + lines;
            case null, default -> { log(o); yield "other"; }
        };
        switch (counts[0]) {
            case 1: case 2, 3: kind += "x"; break;
            default: kind = kind.isEmpty() ? "none" : kind;
        }
        int bits = counts[1] << 2 >> 1 >>> 3 | 4 & 5 ^ ~6, cast = (int) 3.5f + (byte) -1;
        counts[bits]++; --cast; bits >>>= 1; bits |= cast;
        assert cast > 0 : message();
        return s + kind + 'c' + 1L + 0x1F + 1e3 + """
            a "text" block
            """;
    }

    void resources() throws Exception {
        try (var in = open("a"); Reader out = wrap(in)) {
            in.read();
        } catch (IOException | RuntimeException e) {
            throw e;
        } finally {
            close();
        }
        synchronized (this) { notifyAll(); }
        Runnable r = () -> run(), t = this::close;
        Function<String, Integer> f = Integer::parseInt, g = x -> { return x.length(); };
        Supplier<List<String>[]> made = ArrayList[]::new;
        int[][] grid = new int[3][], fixed = {{1}, {2, 3}};
        Object anonymous = new Comparator<String>() {
            @Override public int compare(String a, String b) { return a.compareTo(b); }
        };
        outer.new Inner(grid.length).<String>call("x", (a, b) -> a + b, (int a, final String b) -> b);
        Collections.<String>emptyList().stream().map(String::valueOf).toArray(String[]::new);
        Class<?> c = int[].class;
    }

    enum Genre implements Named {
        /** Made up. */
        NOVEL(1) { @Override int weight() { return 2; } },
        @Deprecated POEM, OTHER;

        private final int weight;
        Genre(int... weights) { weight = weights.length; }
        int weight() { return weight; }
    }

    record Loan<B>(@NonNull B book, long until) implements Comparable<Loan<B>> {
        static int count;
        Loan { check(until); }
        Loan(B book) { this(book, 0L); }
        public int compareTo(Loan<B> other) { return Long.compare(until, other.until); }
    }

    sealed interface Visitor<R> permits Printer, Counter {
        int MAX = 3;
        R visit(Book book);
        default void all() { visit(null); }
        static <Q> Visitor<Q> of(Q q) { return null; }
    }

    @interface Marker {
        String value() default "none";
        Class<?>[] types() default {};
    }
}

final class Printer implements Library.Visitor<Void> {
    public Void visit(Book book) { System.out.println(book); return null; }
}
