//! Files and sockets that a run makes where others may write, too.
//!
//! A path is walked on descriptors, a folder at a time, and a link on it is followed only if root
//! or this process's user made it: whoever else may write in one of the folders cannot lead a
//! process with more rights to a file of its own choice, neither before nor while it is made.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixListener;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, chownat, fchmod, fstat, fstatfs,
    mkdirat, open, openat, readlinkat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::{Gid, Uid, geteuid};

/// Links that a path may lead over, as in the kernel.
const MAX_LINKS: u32 = 40;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

const FOLDER: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether what belongs to this user was made by root, or by the user that the thread acts for.
fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == geteuid().as_raw()
}

fn is_type(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

fn is_same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

/// Whether folders on the path are made if they are missing, and for whom.
#[derive(Clone, Copy)]
enum Missing {
    /// They are an error.
    Refused,
    /// They are made.
    Made,
    /// They are made for another user, but only where nobody else could interfere.
    MadeFor(Uid, Gid),
}

/// What users besides root and this process's can do in a folder of theirs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Nothing.
    Look,
    /// Make what is not there, and remove what is their own.
    Add,
    /// Put anything in the place of anything.
    Replace,
}

impl Others {
    fn of(stat: &Stat) -> Self {
        match (stat.st_mode & 0o022 != 0, stat.st_mode & 0o1000 != 0) {
            (false, _) => Self::Look,
            (true, true) => Self::Add,
            (true, false) => Self::Replace,
        }
    }
}

/// Where a file is or will be: a folder, which stays the same whatever becomes of its path, and a
/// name in it.
pub struct GuardedPath {
    folder: OwnedFd,
    /// Whether only root and this process's user can change what the path to the folder means, and
    /// the folder is theirs.
    guarded: bool,
    /// Who else can make what is in the folder another thing.
    others: Others,
    name: OsString,
    path: PathBuf,
    missing: Missing,
    links: u32,
}

impl GuardedPath {
    /// The place that a path means.
    ///
    /// # Errors
    /// If there is no such folder, or a link of somebody else is on the path.
    pub fn find(path: &Path) -> Result<Self, Error> {
        Self::reach(path, Missing::Refused)
    }

    /// The same, where missing folders are made.
    ///
    /// # Errors
    /// As [`GuardedPath::find`], or if a folder cannot be made.
    pub fn make(path: &Path) -> Result<Self, Error> {
        Self::reach(path, Missing::Made)
    }

    /// The same, where missing folders are made for another user, but only by root in folders that
    /// nobody else can write in.
    ///
    /// # Errors
    /// As [`GuardedPath::make`].
    pub fn make_for(path: &Path, owner: Uid, group: Gid) -> Result<Self, Error> {
        Self::reach(path, Missing::MadeFor(owner, group))
    }

    /// Whether only root and this process's user can change what the path means.
    pub fn is_guarded(&self) -> bool {
        self.guarded && self.others == Others::Look
    }

    fn reach(path: &Path, missing: Missing) -> Result<Self, Error> {
        let folder = open(".", FOLDER, Mode::empty())?;
        let others = Others::of(&fstat(&folder)?);
        let mut place = Self {
            folder,
            others,
            // Who can change the folders above the current one is not known.
            guarded: path.is_absolute(),
            name: OsString::new(),
            path: path.to_path_buf(),
            missing,
            links: 0,
        };
        place.go(path)?;
        Ok(place)
    }

    /// Goes to what a path means that begins in the folder.
    fn go(&mut self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        self.enter_all(path.parent().unwrap_or(Path::new("")))?;
        self.name = name.to_os_string();
        Ok(())
    }

    fn enter_all(&mut self, path: &Path) -> Result<(), Error> {
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => self.enter(OsStr::new(".."))?,
                Component::Normal(name) => self.enter(name)?,
                Component::RootDir | Component::Prefix(_) => {
                    self.others = Others::Look;
                    self.arrive(open("/", FOLDER, Mode::empty())?)?;
                }
            }
        }
        Ok(())
    }

    /// Goes into a folder of the folder.
    fn enter(&mut self, name: &OsStr) -> Result<(), Error> {
        let found = match openat(&self.folder, name, FOLDER, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) => self.make_folder(name)?,
            Err(Errno::NOTDIR | Errno::LOOP) => match self.link(name)? {
                Some(target) => return self.enter_all(&target),
                None => openat(&self.folder, name, FOLDER - OFlags::NOFOLLOW, Mode::empty())?,
            },
            Err(why) => return Err(why.into()),
        };
        self.arrive(found)
    }

    fn arrive(&mut self, folder: OwnedFd) -> Result<(), Error> {
        let stat = fstat(&folder)?;
        self.guarded &= is_trusted(stat.st_uid) && self.others != Others::Replace;
        self.others = Others::of(&stat);
        self.folder = folder;
        Ok(())
    }

    fn make_folder(&self, name: &OsStr) -> Result<OwnedFd, Errno> {
        match self.missing {
            Missing::Made => {}
            Missing::MadeFor(..) if self.is_guarded() => {}
            _ => return Err(Errno::NOENT),
        }
        mkdirat(&self.folder, name, Mode::from_raw_mode(0o755))?;
        let made = openat(&self.folder, name, FOLDER, Mode::empty())?;
        if let Missing::MadeFor(owner, group) = self.missing {
            chownat(&made, "", Some(owner), Some(group), AtFlags::EMPTY_PATH)?;
        }
        Ok(made)
    }

    /// Where a link leads; `None` for one that only the kernel can follow.
    fn link(&mut self, name: &OsStr) -> Result<Option<PathBuf>, Error> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let link = openat(&self.folder, name, flags, Mode::empty())?;
        let stat = fstat(&link)?;
        if !is_type(&stat, FileType::Symlink) {
            return Err(Errno::NOTDIR.into());
        }
        if !is_trusted(stat.st_uid) {
            let why = format!(
                "'{}' is a link of another user (number {}); such links are not followed",
                name.display(),
                stat.st_uid
            );
            return Err(Error::new(ErrorKind::PermissionDenied, why));
        }
        self.guarded &= self.others != Others::Replace;
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        // There, links lead to what may have no path.
        if fstatfs(&link)?.f_type == PROC_SUPER_MAGIC {
            return Ok(None);
        }
        let target = readlinkat(&link, "", Vec::new())?.into_bytes();
        Ok(Some(OsString::from_vec(target).into()))
    }

    /// Listens on a socket here that only its owner can use. One that nobody listens on any more
    /// is replaced.
    ///
    /// # Errors
    /// If somebody listens there, there is something else, or the system says why not.
    pub fn listen(self) -> Result<(UnixListener, SocketFile), Error> {
        self.remove_stale()?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The file gets the socket's mode: at no time can others use it, whatever the umask is.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        let address = match self.is_guarded() {
            true => self.path.clone(),
            false => of_descriptor(&self.folder).join(&self.name),
        };
        bind(&socket, &SocketAddrUnix::new(address)?)?;
        let file = self.look()?;
        listen(&socket, BACKLOG)?;
        Ok((UnixListener::from(socket), SocketFile { place: self, file }))
    }

    fn remove_stale(&self) -> Result<(), Error> {
        let found = match self.look() {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()),
            Err(why) => return Err(why.into()),
        };
        if !is_type(&fstat(&found)?, FileType::Socket) {
            let why = "there is a file that is no socket";
            return Err(Error::new(ErrorKind::AlreadyExists, why));
        }
        // One whose queue of clients is full would keep a socket that blocks waiting.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match connect(&probe, &SocketAddrUnix::new(of_descriptor(&found))?) {
            Err(Errno::CONNREFUSED) => {}
            Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
                let why = "another instance listens there";
                return Err(Error::new(ErrorKind::AddrInUse, why));
            }
            Err(why) => return Err(why.into()),
        }
        self.remove(&found);
        Ok(())
    }

    /// What has the name now, without opening it.
    fn look(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.folder, &self.name, flags, Mode::empty())
    }

    /// Takes the name away from a file, if it has it still. While it is open, no other file can be
    /// mistaken for it.
    fn remove(&self, file: &OwnedFd) {
        let now = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if let (Ok(stat), Ok(now)) = (fstat(file), now)
            && is_same(&stat, &now)
        {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// A path that means what a descriptor does.
fn of_descriptor(descriptor: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}

/// The file of a socket that is listened on.
pub struct SocketFile {
    place: GuardedPath,
    file: OwnedFd,
}

impl SocketFile {
    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Leaves it to another user.
    ///
    /// # Errors
    /// Why not; in a folder where others can write it might be another file, which is left alone.
    pub fn leave_to(&self, owner: Uid, group: Gid) -> Result<(), Error> {
        if !self.place.is_guarded() {
            return Err(Errno::PERM.into());
        }
        Ok(chownat(&self.file, "", Some(owner), Some(group), AtFlags::EMPTY_PATH)?)
    }

    /// Takes its name away, if it is still this socket's.
    pub fn remove(&self) {
        self.place.remove(&self.file);
    }
}

/// Opens a file to write it anew, or to add to its end; it is made if there is none.
///
/// # Errors
/// Why it cannot be written, or that a link of somebody else is on the path.
pub fn create(path: &Path, append: bool) -> Result<File, Error> {
    let mut place = GuardedPath::find(path)?;
    let end = if append { OFlags::APPEND } else { OFlags::TRUNC };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | end;
    let mode = Mode::from_raw_mode(0o666);
    loop {
        let name = place.name.clone();
        match openat(&place.folder, &name, flags | OFlags::NOFOLLOW, mode) {
            Err(Errno::LOOP) => match place.link(&name)? {
                Some(target) => place.go(&target)?,
                None => return Ok(openat(&place.folder, &name, flags, mode)?.into()),
            },
            opened => return Ok(opened?.into()),
        }
    }
}

/// Writes a whole file.
///
/// # Errors
/// As [`create`], or why there is no room for it.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    create(path, false)?.write_all(bytes.as_ref())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    /// A folder that goes away with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("catena-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_socket_is_its_owners_and_replaces_one_that_nobody_listens_on() {
        let scratch = Scratch::new("sockets");
        let path = scratch.join("s");
        drop(UnixListener::bind(&path).unwrap());
        let (listener, file) = GuardedPath::find(&path).unwrap().listen().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        UnixStream::connect(&path).unwrap();
        let why = GuardedPath::find(&path).unwrap().listen().err().unwrap();
        assert_eq!(why.to_string(), "another instance listens there");
        drop(listener);
        // What another program made meanwhile stays.
        let (_listener, other) = GuardedPath::find(&path).unwrap().listen().unwrap();
        file.remove();
        assert!(path.exists());
        other.remove();
        assert!(!path.exists());
        let _datagrams = UnixDatagram::bind(&path).unwrap();
        let why = GuardedPath::find(&path).unwrap().listen().err().unwrap();
        assert_eq!(why.kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn what_is_no_socket_stays() {
        let scratch = Scratch::new("no-sockets");
        let (file, link) = (scratch.join("file"), scratch.join("link"));
        fs::write(&file, "mine").unwrap();
        symlink(scratch.join("nowhere"), &link).unwrap();
        for path in [&file, &link] {
            let why = GuardedPath::find(path).unwrap().listen().err().unwrap();
            assert_eq!(why.to_string(), "there is a file that is no socket");
        }
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        assert!(!scratch.join("nowhere").exists());
        assert!(GuardedPath::find(&scratch.join("none/s")).is_err());
        let (_listener, _) = GuardedPath::make(&scratch.join("a/b/s")).unwrap().listen().unwrap();
        assert!(fs::metadata(scratch.join("a/b/s")).unwrap().file_type().is_socket());
    }

    #[test]
    fn files_are_made_over_ones_own_links() {
        let scratch = Scratch::new("files");
        let (file, link) = (scratch.join("file"), scratch.join("link"));
        symlink("folder/../file", &link).unwrap();
        fs::create_dir(scratch.join("folder")).unwrap();
        symlink(&scratch.0, scratch.join("folder/back")).unwrap();
        let write = |path: &Path, append, text: &str| {
            create(path, append).unwrap().write_all(text.as_bytes()).unwrap();
        };
        write(&link, false, "one");
        write(&scratch.join("folder/back/link"), true, "two");
        assert_eq!(fs::read(&file).unwrap(), b"onetwo");
        write(&file, false, "3");
        assert_eq!(fs::read(&file).unwrap(), b"3");
        // What only the kernel finds.
        let open = File::options().append(true).open(&file).unwrap().into();
        write(&of_descriptor(&open), true, "4");
        assert_eq!(fs::read(&file).unwrap(), b"34");
        symlink("round", scratch.join("round")).unwrap();
        assert!(create(&scratch.join("round"), false).is_err());
        assert_eq!(create(&scratch.0, false).unwrap_err().kind(), ErrorKind::IsADirectory);
    }
}
