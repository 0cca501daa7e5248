//! A vector in chunks that snapshots share: a clone copies one pointer per page, a change copies only what it touches.

use std::sync::Arc;

/// Chunks per page. Snapshots copy one pointer per page; a change copies the pointers of its page.
const PAGE: usize = 64;

/// Chunks of type `C` behind two levels of shared pointers.
pub struct Chunked<C> {
    pages: Vec<Arc<[Arc<C>]>>,
    len: usize,
    /// Bytes copied because other owners share them, since this was built.
    copied: u64,
}

impl<C> Clone for Chunked<C> {
    fn clone(&self) -> Self {
        Chunked { pages: self.pages.clone(), len: self.len, copied: self.copied }
    }
}

impl<C> Default for Chunked<C> {
    fn default() -> Self {
        Chunked { pages: Vec::new(), len: 0, copied: 0 }
    }
}

impl<C> FromIterator<C> for Chunked<C> {
    fn from_iter<I: IntoIterator<Item = C>>(chunks: I) -> Self {
        let mut all = Chunked::default();
        let mut page: Vec<Arc<C>> = Vec::with_capacity(PAGE);
        for chunk in chunks {
            page.push(Arc::new(chunk));
            all.len += 1;
            if page.len() == PAGE {
                all.pages.push(std::mem::replace(&mut page, Vec::with_capacity(PAGE)).into());
            }
        }
        if !page.is_empty() {
            all.pages.push(page.into());
        }
        all
    }
}

impl<C> Chunked<C> {
    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn chunk(&self, i: usize) -> &C {
        &self.pages[i / PAGE][i % PAGE]
    }

    pub fn get(&self, i: usize) -> Option<&C> {
        (i < self.len).then(|| self.chunk(i))
    }

    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.pages.iter().flat_map(|page| page.iter().map(|chunk| &**chunk))
    }

    pub fn push(&mut self, chunk: C) {
        let chunk = Arc::new(chunk);
        match self.pages.last_mut().filter(|page| page.len() < PAGE) {
            Some(page) => *page = page.iter().cloned().chain([chunk]).collect(),
            None => self.pages.push([chunk].into()),
        }
        self.len += 1;
    }

    /// Bytes copied so far because other owners share them. This is an upper bound of what an older clone keeps alive
    /// on its own.
    pub fn copied(&self) -> u64 {
        self.copied
    }
}

impl<C: Clone + Heap> Chunked<C> {
    /// A chunk for writing. It is copied first if a snapshot shares it.
    pub fn chunk_mut(&mut self, i: usize) -> &mut C {
        let page = Arc::make_mut(&mut self.pages[i / PAGE]);
        let chunk = &mut page[i % PAGE];
        if Arc::get_mut(chunk).is_none() {
            self.copied += chunk.bytes() as u64;
        }
        Arc::make_mut(chunk)
    }

    pub fn bytes(&self) -> usize {
        let own = self.pages.len() * size_of::<Arc<[Arc<C>]>>() + self.len * size_of::<Arc<C>>();
        own + self.iter().map(Heap::bytes).sum::<usize>()
    }
}

/// The memory of a value, including what it points to.
pub trait Heap {
    fn bytes(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Heap for u32 {
        fn bytes(&self) -> usize {
            4
        }
    }

    #[test]
    fn a_clone_does_not_change() {
        let mut all: Chunked<u32> = (0..200).collect();
        let before = all.clone();
        *all.chunk_mut(150) = 7;
        all.push(200);
        assert_eq!((before.len(), *before.chunk(150)), (200, 150));
        assert_eq!((all.len(), *all.chunk(150), *all.chunk(200)), (201, 7, 200));
        assert!(before.iter().copied().eq(0..200));
        assert_eq!(all.copied(), 4);
        drop(before);
        *all.chunk_mut(150) = 8;
        assert_eq!(all.copied(), 4, "with one owner it is changed in place");
        assert!(all.get(201).is_none());
    }
}
