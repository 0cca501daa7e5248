//! File systems that another machine or program serves, and reads from them that end in time.

use super::confined_files::{self, FileNotRead};
use super::files::{FILE_BYTES, ListedFile};
use super::timed_read::PendingReads;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time after which a pass gives up a read: the largest file over a slow network takes less.
const PASS_LIMIT: Duration = Duration::from_secs(10);
/// Reads that a pass gives up before it tries no more, besides those that may be under way.
const MOST_GIVEN_UP: usize = 8;

/// Whether a file system may not answer, because another machine or program serves it. Where the system does not report
/// its kind, it counts as one that does.
#[cfg(target_os = "linux")]
pub fn is_served(path: &Path) -> bool {
    /// NFS, SMB (three generations), FUSE with virtiofs, 9P, AFS, Ceph, Lustre, Coda, GPFS and BeeGFS, from `statfs(2)`
    /// and the sources of those that are not part of Linux.
    const SERVED: [u32; 12] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x5346_414f,
        0x00c3_6400,
        0x0bd0_0bd0,
        0x7375_7245,
        0x4750_4653,
        0x1983_0326,
    ];
    let kind = rustix::fs::statfs(path).ok().and_then(|about| u32::try_from(about.f_type & 0xffff_ffff).ok());
    kind.is_some_and(|kind| SERVED.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
pub fn is_served(_: &Path) -> bool {
    false
}

/// The result of reading a file.
pub enum TreeRead {
    Ended(Result<Vec<u8>, FileNotRead>),
    /// The file system did not answer in time, now or too often before.
    Unanswered,
}

/// Reads the files of a working tree for a pass. A read on the thread of a pass is cheap, and nothing can end it; so files
/// that may not be answered are read on threads that can be left behind.
pub struct TreeReads {
    root: PathBuf,
    pending: PendingReads,
    limit: Duration,
    read: fn(&Path, &str, u64) -> Result<Vec<u8>, FileNotRead>,
}

impl TreeReads {
    pub fn below(root: &Path) -> TreeReads {
        let pending = PendingReads::at_most(rayon::current_num_threads() + MOST_GIVEN_UP);
        TreeReads { root: root.to_owned(), pending, limit: PASS_LIMIT, read: confined_files::read }
    }

    /// With another way to read, and less time.
    #[cfg(test)]
    pub fn with(self, read: fn(&Path, &str, u64) -> Result<Vec<u8>, FileNotRead>, limit: Duration) -> TreeReads {
        TreeReads { read, limit, ..self }
    }

    pub fn read(&self, listed: &ListedFile) -> TreeRead {
        let read = self.read;
        if !listed.is_served {
            return TreeRead::Ended(read(&self.root, &listed.path, FILE_BYTES));
        }
        let (root, path) = (self.root.clone(), listed.path.clone());
        match self.pending.within(self.limit, move || read(&root, &path, FILE_BYTES)) {
            Some(ended) => TreeRead::Ended(ended),
            None => TreeRead::Unanswered,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn local_file_systems_are_not_served() {
        assert!(!is_served(Path::new("/proc")));
        assert!(!is_served(Path::new("/no/such/path")));
    }
}
