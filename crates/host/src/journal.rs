//! Journal: what was made on this host, so that it can be taken down by whoever comes, also after a crash.
//!
//! Every line is written before what it names is there. A namespace stands with the number that the kernel knows it by,
//! a symbolic link with where it leads, and processes carry a mark that is nobody else's: what has the name of something made
//! here and is something else is left alone.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::namespace::{Namespace, is_interface_name, is_name};
use crate::process::run;
use crate::tuning::HUGE_PAGES;
use crate::{Failure, Process, cgroup};

/// The first line.
const HEAD: &str = "catena journal 1";

/// The name of the file in its folder.
const FILE: &str = "journal";

/// Bytes of a journal at most.
const LONGEST: u64 = 1 << 24;

/// What was made, and the folder of its files.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    file: File,
    mark: String,
    namespaces: Vec<Namespace>,
    links: Vec<(PathBuf, PathBuf)>,
    /// Control groups.
    groups: Vec<PathBuf>,
    /// Interfaces of this host that are elsewhere meanwhile: their names, and their names in which namespace.
    interfaces: Vec<(String, String, String)>,
    /// Settings of this host: their files, what they had, and what they have meanwhile.
    settings: Vec<(PathBuf, String, String)>,
    stays: bool,
}

/// What was found in a folder.
#[derive(Debug)]
pub enum Opened {
    /// No journal.
    Nothing,
    /// One whose maker left what it made.
    There(Journal),
    /// One whose maker ended without taking anything down.
    Left(Journal),
}

impl Journal {
    /// Begins one in a folder that is not there yet.
    ///
    /// # Errors
    /// If it cannot be made, or is there.
    pub fn begin(folder: &Path) -> Result<Self, Failure> {
        let mut build = DirBuilder::new();
        if let Some(above) = folder.parent() {
            build.recursive(true).mode(0o755).create(above).map_err(|why| match why.kind() {
                ErrorKind::PermissionDenied => Failure::NotRoot,
                _ => Failure::File(above.to_path_buf(), why),
            })?;
        }
        let mut is_first = true;
        loop {
            let made = DirBuilder::new().mode(0o700).create(folder);
            match made.map_err(|why| (why.kind(), why)) {
                Ok(()) => {}
                Err((ErrorKind::PermissionDenied, _)) => return Err(Failure::NotRoot),
                // Another maker may have been faster than this one the second time.
                Err((ErrorKind::AlreadyExists, _))
                    if is_first || matches!(Self::open(folder), Err(Failure::Held(_, Some(_)))) =>
                {
                    return Err(Failure::Taken(folder.display().to_string()));
                }
                Err((ErrorKind::AlreadyExists, _)) => {}
                Err((_, why)) => return Err(Failure::File(folder.to_path_buf(), why)),
            }
            if let Some(journal) = Self::begin_in(folder)? {
                return Ok(journal);
            }
            is_first = false;
            std::thread::yield_now();
        }
    }

    /// Begins one in an empty folder; none if somebody takes that down meanwhile, for the maker of an empty one may be gone.
    fn begin_in(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.append(true).read(true).create_new(true).mode(0o600);
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {
                return Ok(None);
            }
            Err(why) => return Err(Failure::File(path, why)),
        };
        let mut journal = Self::of(folder, file);
        journal.mark = std::iter::repeat_with(|| fastrand::char('a'..='z')).take(24).collect();
        match journal.lock() {
            Err(Failure::Held(..)) => return Ok(None),
            other => other?,
        }
        if !journal.is_linked()? {
            return Ok(None);
        }
        let (mark, owner) = (journal.mark.clone(), std::process::id());
        journal.write(&format!("{HEAD}\nmark {mark}\nowner {owner}\n"))?;
        Ok(Some(journal))
    }

    /// One that has nothing.
    fn of(folder: &Path, file: File) -> Self {
        Self {
            folder: folder.to_path_buf(),
            file,
            mark: String::new(),
            namespaces: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
            interfaces: Vec::new(),
            settings: Vec::new(),
            stays: false,
        }
    }

    /// Looks for one in a folder. If its maker runs, that is an error, [`Failure::Held`].
    ///
    /// # Errors
    /// If it is held, or cannot be read.
    pub fn open(folder: &Path) -> Result<Opened, Failure> {
        let path = folder.join(FILE);
        let file = match OpenOptions::new().append(true).read(true).open(&path) {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => {
                // Its maker was killed before it wrote anything: then the folder is empty.
                let _ = std::fs::remove_dir(folder);
                return Ok(Opened::Nothing);
            }
            Err(why) if why.kind() == ErrorKind::PermissionDenied => return Err(Failure::NotRoot),
            Err(why) => return Err(Failure::File(path, why)),
        };
        let mut journal = Self::of(folder, file);
        if let Err(why) = journal.lock() {
            let Failure::Held(path, _) = why else { return Err(why) };
            let owner = journal.read()?;
            if owner.is_none_or(is_there) {
                return Err(Failure::Held(path, owner));
            }
            // Its maker is dead: who has it takes it down, or is a command that the maker was starting.
            journal.file.lock().map_err(Failure::at(folder))?;
            journal = Self::of(folder, journal.file);
        }
        // Only who holds it reads all that its maker wrote.
        journal.read()?;
        Ok(match (journal.is_linked()?, journal.stays) {
            // Another has taken it down.
            (false, _) => Opened::Nothing,
            (true, true) => Opened::There(journal),
            (true, false) => Opened::Left(journal),
        })
    }

    /// Whether its file has its name still: who takes it down holds it until then.
    fn is_linked(&self) -> Result<bool, Failure> {
        let about = self.file.metadata().map_err(Failure::at(&self.folder))?;
        Ok(about.nlink() > 0)
    }

    /// Reads its file; the process that made it.
    fn read(&mut self) -> Result<Option<u32>, Failure> {
        let path = self.folder.join(FILE);
        let read = || -> std::io::Result<String> {
            let mut text = String::new();
            (&self.file).seek(SeekFrom::Start(0))?;
            (&self.file).take(LONGEST).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(Failure::at(&path))?;
        Ok(self.parse(&text))
    }

    /// Takes what lines say; the last may be cut off. Lines that are not a journal's are passed over: what they would
    /// name is left alone.
    fn parse(&mut self, text: &str) -> Option<u32> {
        let mut owner = None;
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let mut words = line.split('\t').flat_map(|part| part.splitn(2, ' '));
            match (words.next(), words.next(), words.next()) {
                (Some("mark"), Some(mark), None)
                    if mark.len() >= 24 && mark.bytes().all(|byte| byte.is_ascii_lowercase()) =>
                {
                    self.mark = mark.into();
                }
                (Some("owner"), Some(number), None) => owner = number.parse().ok(),
                (Some("namespace"), Some(number), Some(name)) if is_name(name) => {
                    let number = number.parse();
                    let of = number.map(|number| Namespace { name: name.into(), number });
                    self.namespaces.extend(of);
                }
                (Some("link"), Some(from), Some(to)) => self.links.push((from.into(), to.into())),
                (Some("group"), Some(path), None) if self.is_own_group(path) => {
                    self.groups.push(path.into());
                }
                (Some("interface"), Some(name), Some(there))
                    if [name, there].iter().all(|of| is_interface_name(of)) =>
                {
                    let namespace = words.next().filter(|of| is_name(of));
                    let taken = namespace.map(|of| (name.into(), there.into(), of.into()));
                    self.interfaces.extend(taken);
                }
                (Some("setting"), Some(path), Some(before)) if is_setting(Path::new(path)) => {
                    let set = words.next().map(|set| (path.into(), before.into(), set.into()));
                    self.settings.extend(set);
                }
                (Some("stays"), None, None) => self.stays = true,
                (Some("changes"), None, None) => self.stays = false,
                _ => {}
            }
        }
        owner
    }

    /// Whether this is a control group that was made here.
    fn is_own_group(&self, path: &str) -> bool {
        let name = format!("{}{}", cgroup::PREFIX, self.mark);
        let below = path.strip_prefix(cgroup::MOUNT).is_some_and(|rest| rest.starts_with('/'));
        !self.mark.is_empty()
            && below
            && !path.contains("..")
            && path.ends_with(&format!("/{name}"))
    }

    fn lock(&self) -> Result<(), Failure> {
        match self.file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(Failure::Held(self.folder.clone(), None)),
            Err(TryLockError::Error(why)) => Err(Failure::File(self.folder.clone(), why)),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(Failure::at(&self.folder.join(FILE)))
    }

    /// The folder for what is made.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its processes bear, and nobody else.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Its namespaces.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// Makes a network namespace without IPv6.
    ///
    /// # Errors
    /// If there is one of this name, or it cannot be made.
    pub fn namespace(&mut self, name: &str) -> Result<Namespace, Failure> {
        let namespace = Namespace::make(name, self)?;
        namespace.turn_off_ipv6()?;
        Ok(namespace)
    }

    pub(crate) fn add_namespace(&mut self, of: &Namespace) -> Result<(), Failure> {
        self.write(&format!("namespace {}\t{}\n", of.number, of.name))?;
        self.namespaces.push(of.clone());
        Ok(())
    }

    /// Notes a control group that is to be made, whose name has the journal's mark.
    pub(crate) fn add_group(&mut self, at: &Path) -> Result<(), Failure> {
        self.write(&format!("group {}\n", at.display()))?;
        self.groups.push(at.to_path_buf());
        Ok(())
    }

    /// Moves an interface of this host into a namespace, until all is taken down.
    ///
    /// # Errors
    /// If there is none of this name, or somebody uses it: it has addresses.
    pub(crate) fn take_interface(
        &mut self,
        name: &str,
        to: &Namespace,
        there: &str,
    ) -> Result<(), Failure> {
        let said = run(Command::new("ip").args(["-json", "address", "show", "dev", name]), "")?;
        let all: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let addresses = all[0]["addr_info"].as_array().into_iter().flatten();
        // It loses all of them; those of the link itself come back.
        let mut own = addresses.filter(|of| of["scope"] != "link");
        if let Some(address) = own.find_map(|of| of["local"].as_str()) {
            return Err(Failure::Impossible(format!(
                "the interface '{name}' has the address {address}, which it would lose: `ip address flush dev {name}` if nobody needs it"
            )));
        }
        self.write(&format!("interface {name}\t{there} {}\n", to.name))?;
        self.interfaces.push((name.into(), there.into(), to.name.clone()));
        let mut ip = self.marked(Command::new("ip"));
        run(ip.args(["link", "set", "dev", name, "netns", &to.name, "name", there]), "")?;
        to.ip(self, &format!("link set dev {there} up"))
    }

    /// Notes that an interface goes on to another namespace, if it is one that was taken.
    pub(crate) fn moves_interface(
        &mut self,
        there: &str,
        to: &Namespace,
        new: &str,
    ) -> Result<(), Failure> {
        let Some(at) = self.interfaces.iter().position(|(_, of, _)| of == there) else {
            return Ok(());
        };
        let name = self.interfaces[at].0.clone();
        self.write(&format!("interface {name}\t{new} {}\n", to.name))?;
        self.interfaces.push((name, new.into(), to.name.clone()));
        Ok(())
    }

    /// Gives an interface back that was taken, if it is still there.
    fn give_back(
        &self,
        (name, there, namespace): &(String, String, String),
    ) -> Result<(), Failure> {
        let own = self.namespaces.iter().any(|of| of.name == *namespace && of.is_there());
        let is_there = || {
            let mut ip = Command::new("ip");
            run(ip.args(["-n", namespace, "link", "show", "dev", there]), "").is_ok()
        };
        if !own || !is_there() {
            return Ok(());
        }
        let here = std::process::id();
        let back =
            format!("link set dev {there} down\nlink set dev {there} netns {here} name {name}");
        run(Command::new("ip").args(["-n", namespace, "-batch", "-"]), &back)?;
        run(Command::new("ip").args(["link", "set", "dev", name, "up"]), "").map(drop)
    }

    /// Sets what a file of the kernel's has, until all is taken down. Nothing is done if it has it.
    ///
    /// # Errors
    /// If it cannot be set, [`Failure::File`]; or if that cannot be noted.
    pub(crate) fn set(&mut self, path: &Path, value: &str) -> Result<(), Failure> {
        let before = setting(path).map_err(Failure::at(path))?;
        if before == value {
            return Ok(());
        }
        let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        if !is_setting(path) || !is_word(&before) || !is_word(value) {
            return Err(Failure::Impossible(format!("{} is no setting", path.display())));
        }
        self.write(&format!("setting {}\t{before} {value}\n", path.display()))?;
        std::fs::write(path, value).map_err(Failure::at(path))?;
        // The kernel may write it otherwise.
        let now = setting(path).map_err(Failure::at(path))?;
        self.write(&format!("setting {}\t{before} {now}\n", path.display()))?;
        self.settings.push((path.to_path_buf(), before, now));
        Ok(())
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&mut self, at: &Path, to: &Path) -> Result<(), Failure> {
        let is_line = |path: &Path| path.to_str().is_some_and(|text| !text.contains(['\n', '\t']));
        if !is_line(at) || !is_line(to) {
            return Err(Failure::Impossible(format!("{} is no path for a socket", at.display())));
        }
        self.write(&format!("link {}\t{}\n", at.display(), to.display()))?;
        self.links.push((at.to_path_buf(), to.to_path_buf()));
        std::os::unix::fs::symlink(to, at).map_err(|why| match why.kind() {
            ErrorKind::AlreadyExists => Failure::Taken(at.display().to_string()),
            ErrorKind::NotFound => Failure::Impossible(format!(
                "{}: its folder is not there: `mkdir -p {}`",
                at.display(),
                at.parent().unwrap_or(at).display()
            )),
            _ => Failure::File(at.to_path_buf(), why),
        })
    }

    /// The command, as one that ends with the rest.
    pub fn marked(&self, mut command: Command) -> Command {
        command.env(crate::process::MARK, &self.mark);
        command
    }

    /// Starts a program that stays; its output goes to a file.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self, command: &mut Command, output: &Path) -> Result<Process, Failure> {
        Process::start(command, &self.mark, output)
    }

    /// Starts a program whose input and output are decided.
    pub(crate) fn start_as_is(&self, command: &mut Command) -> Result<Process, Failure> {
        Process::start_as_is(command, &self.mark)
    }

    /// What was made stays when its maker ends.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn stay(&mut self) -> Result<(), Failure> {
        self.write("stays\n")?;
        self.stays = true;
        Ok(())
    }

    /// Ends its processes but some, for what was made to be changed; how many these were. Until it [stays](Self::stay) again, it
    /// is left if its maker ends.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn change(&mut self, kept: &[u32]) -> Result<usize, Failure> {
        self.write(&format!("owner {}\nchanges\n", std::process::id()))?;
        self.stays = false;
        Ok(self.end_processes(kept))
    }

    fn end_processes(&self, kept: &[u32]) -> usize {
        let mut ended = 0;
        // What ends may have started others meanwhile.
        for _ in 0..4 {
            let mut all = self.processes();
            all.retain(|process| !kept.contains(&process.number));
            if all.is_empty() {
                break;
            }
            ended += all.len();
            Process::end_all(&all);
        }
        ended
    }

    /// Its processes that run.
    pub fn processes(&self) -> Vec<Process> {
        if self.mark.is_empty() { Vec::new() } else { Process::of_mark(&self.mark) }
    }

    /// Ends what programs started in its namespaces and nobody waits for, marked or not. Only for namespaces
    /// that nobody else starts programs in.
    pub fn end_forgotten(&self) {
        let numbers: Vec<u64> = self.namespaces.iter().map(|of| of.number).collect();
        Process::end_all(&self.processes());
        Process::end_all(&Process::of_namespaces(&numbers));
    }

    /// Takes all down that was made, the last first, and removes the folder. What it could not take down is named, and the
    /// journal stays.
    ///
    /// # Errors
    /// The first that could not be taken down.
    pub fn take_down(self) -> Result<Gone, Failure> {
        let mut first = Ok(());
        // What a container runtime was making when its maker ended is there after that.
        crate::container::clean_all(&self, false);
        let mut gone = Gone { processes: self.end_processes(&[]), ..Gone::default() };
        crate::container::clean_all(&self, true);
        self.groups.iter().for_each(|group| cgroup::remove_all(group));
        for taken in self.interfaces.iter().rev() {
            first = first.and(self.give_back(taken));
        }
        for (path, before, now) in self.settings.iter().rev() {
            // What another has set meanwhile stays.
            if setting(path).is_ok_and(|there| there == *now) {
                let put = std::fs::write(path, before);
                first = first.and(put.map_err(Failure::at(path)));
            }
        }
        if first.is_err() {
            // With its namespace it would be gone.
            return first.map(|()| gone);
        }
        for namespace in self.namespaces.iter().rev() {
            match namespace.remove() {
                Ok(was_there) => gone.namespaces += usize::from(was_there),
                Err(why) => first = first.and(Err(why)),
            }
        }
        for (at, to) in self.links.iter().rev() {
            if std::fs::read_link(at).is_ok_and(|there| there == *to) {
                let removed = std::fs::remove_file(at);
                first = first.and(removed.map_err(Failure::at(at)));
            }
        }
        first?;
        self.remove_folder().map_err(Failure::at(&self.folder))?;
        Ok(gone)
    }

    /// Removes the folder. The journal goes last: if this is cut short, the next who comes goes on with it.
    fn remove_folder(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name() == FILE {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => std::fs::remove_dir_all(entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
        }
        std::fs::remove_file(self.folder.join(FILE))?;
        // Who finds it empty removes it, too.
        match std::fs::remove_dir(&self.folder) {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Has the process that holds a journal end, which takes down what it made.
    ///
    /// # Errors
    /// If it does not end.
    pub fn stop(held: Failure) -> Result<(), Failure> {
        match held {
            Failure::Held(_, Some(number)) if Process::stop(number) => Ok(()),
            other => Err(other),
        }
    }
}

/// What a file of the kernel's has.
fn setting(path: &Path) -> std::io::Result<String> {
    Ok(std::fs::read_to_string(path)?.trim().to_string())
}

/// Whether a file is one of the kernel's settings, and no other.
fn is_setting(path: &Path) -> bool {
    const BELOW: [&str; 2] = ["/proc/irq", "/sys/devices/system/cpu"];
    let is_plain = path.components().all(|part| part.as_os_str() != "..");
    is_plain && (path == Path::new(HUGE_PAGES) || BELOW.iter().any(|below| path.starts_with(below)))
}

/// Whether there is a process of this number.
fn is_there(number: u32) -> bool {
    Path::new(&format!("/proc/{number}")).exists()
}

/// What was taken down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Processes that ended.
    pub processes: usize,
    /// Namespaces that were removed.
    pub namespaces: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("catena{}{name}", std::process::id()))
    }

    #[test]
    fn a_journal_is_held_read_back_and_gone() {
        let folder = folder("journal");
        let mut journal = Journal::begin(&folder).expect("it is new");
        let (at, to) = (folder.join("at"), folder.join("to"));
        journal.link(&at, &to).expect("a link");
        assert!(matches!(Journal::begin(&folder), Err(Failure::Taken(_))));
        let own = Some(std::process::id());
        match Journal::open(&folder) {
            Err(Failure::Held(_, owner)) => assert_eq!(owner, own),
            other => panic!("{other:?}"),
        }
        drop(journal);
        let Ok(Opened::Left(mut journal)) = Journal::open(&folder) else { panic!("it is left") };
        assert_eq!(journal.links, [(at, to)]);
        journal.stay().expect("written");
        drop(journal);
        let Ok(Opened::There(mut journal)) = Journal::open(&folder) else { panic!("it stays") };
        assert_eq!(journal.change(&[]).expect("written"), 0);
        drop(journal);
        let Ok(Opened::Left(mut journal)) = Journal::open(&folder) else { panic!("it is left") };
        journal.stay().expect("written");
        drop(journal);
        let Ok(Opened::There(journal)) = Journal::open(&folder) else { panic!("it stays") };
        assert_eq!(journal.take_down().expect("it goes"), Gone::default());
        assert!(!folder.exists());
        assert!(matches!(Journal::open(&folder), Ok(Opened::Nothing)));
    }

    /// While folders are made, others look into them: no maker loses one, and nobody finds one of a maker that runs.
    #[test]
    fn nobody_takes_down_what_begins() {
        let folder = folder("begins");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        match Journal::open(&folder) {
                            Ok(Opened::Nothing) | Err(Failure::Held(..)) => {}
                            Ok(Opened::Left(journal)) => {
                                assert_eq!(journal.mark, "", "its maker had begun it");
                                // Its maker may have it again.
                                let _ = journal.take_down();
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                });
            }
            for _ in 0..500 {
                let journal = Journal::begin(&folder).expect("it is new");
                assert!(folder.join(FILE).exists());
                journal.take_down().expect("it goes");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    /// Of those who come at once after a maker ended, one takes down what it left.
    #[test]
    fn one_takes_down_what_is_left() {
        let folder = folder("left");
        for _ in 0..200 {
            let mut journal = Journal::begin(&folder).expect("it is new");
            // A number that no process has.
            journal.write("owner 4194305\n").expect("written");
            drop(journal);
            let took = || match Journal::open(&folder).expect("nobody holds it who runs") {
                Opened::Left(journal) => journal.take_down().map(|_| 1).expect("it goes"),
                _ => 0,
            };
            let all = std::thread::scope(|scope| {
                let all = [scope.spawn(took), scope.spawn(took), scope.spawn(took)];
                all.map(|of| of.join().expect("no panic"))
            });
            assert_eq!(all.iter().sum::<i32>(), 1);
        }
    }

    #[test]
    fn what_another_put_in_the_place_of_a_link_stays() {
        let folder = folder("links");
        let others = folder.with_extension("others");
        let mut journal = Journal::begin(&folder).expect("it is new");
        journal.link(&others, &folder.join("to")).expect("a link");
        std::fs::remove_file(&others).expect("it was there");
        std::os::unix::fs::symlink("/elsewhere", &others).expect("another link");
        journal.take_down().expect("it goes");
        assert_eq!(std::fs::read_link(&others).expect("it is there"), Path::new("/elsewhere"));
        std::fs::remove_file(&others).expect("it was there");
    }

    #[test]
    fn processes_end_with_those_that_they_started() {
        let folder = folder("processes");
        let journal = Journal::begin(&folder).expect("it is new");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & sleep 1000"]);
        let process = journal.start(&mut command, &folder.join("out")).expect("it starts");
        assert!(process.is_running());
        while journal.processes().len() < 2 {
            std::thread::yield_now();
        }
        let mark = journal.mark.clone();
        journal.take_down().expect("it goes");
        assert!(!process.is_running() && Process::of_mark(&mark).is_empty());
    }

    #[test]
    fn hostile_lines_are_passed_over() {
        let mut random = fastrand::Rng::with_seed(1);
        let good = "catena journal 1\nmark abcdefghijklmnopqrstuvwx\nowner 12\nnamespace 4026531840\tlan\ninterface west\tp0 lan\nlink /a\t/b\nsetting /proc/irq/7/smp_affinity_list\t0-1 0\ngroup /sys/fs/cgroup/memory/catena-abcdefghijklmnopqrstuvwx\nstays\n";
        for _ in 0..2000 {
            let mut bytes = good.as_bytes().to_vec();
            for _ in 0..random.usize(1..8) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            let path = folder("hostile");
            let file = File::create(&path).expect("a file");
            let mut journal = Journal::of(&path, file);
            journal.parse(&String::from_utf8_lossy(&bytes));
            assert!(journal.namespaces.iter().all(|of| is_name(&of.name)));
            assert!(journal.interfaces.iter().all(|(name, there, of)| {
                is_interface_name(name) && is_interface_name(there) && is_name(of)
            }));
            assert!(journal.settings.iter().all(|(path, ..)| is_setting(path)));
            let own = format!("/{}{}", cgroup::PREFIX, journal.mark);
            assert!(journal.groups.iter().all(|of| of.to_string_lossy().ends_with(&own)));
            let _ = std::fs::remove_file(path);
        }
    }
}
