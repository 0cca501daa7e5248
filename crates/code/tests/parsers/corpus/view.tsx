import React, { useState } from 'react';

interface Props<T> { items: T[]; render(item: T): React.ReactNode; title?: string }

export function List<T extends { id: string }>({ items, render, title = 'List', ...rest }: Props<T>): JSX.Element {
  const [open, setOpen] = useState<boolean>(false);
  const toggle = React.useCallback(() => setOpen(value => !value), []);
  return (
    <Panel.Body title={title} data-open={open} on:click={toggle} {...rest}>
      {/* nothing */}
      {open ? items.map(item => <Row key={item.id} {...item}>{render(item)}</Row>) : <Empty />}
      <>text &nbsp; it's {`${title}`}</>
      <Select<string> value={title as string} onChange={(e: Event) => { change(e!) }} />
    </Panel.Body>
  );
}

const identity = <T,>(x: T) => x, wrapped = <T extends object>(x: T): T => identity(x);
export default React.memo(List) as typeof List;
