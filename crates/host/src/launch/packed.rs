//! Images, in containers of a runtime: their files, read-only; no network but what they are given, no capabilities beyond their privileges,
//! no new privileges.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Environment, Packets, Running, Start};
use crate::confine::{self, User};
use crate::container::{self, Container, Function, Runtime};
use crate::image::Image;
use crate::{Failure, Journal};

/// An image whose files are there, and what runs it.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    runtime: &'static dyn Runtime,
    root: PathBuf,
    arguments: Vec<String>,
    environment: Vec<String>,
    folder: String,
}

impl Packed {
    /// Writes an image's files, once for all that run it.
    pub(crate) fn new(
        path: &Path,
        arguments: &[String],
        runtime: &str,
        journal: &Journal,
    ) -> Result<Self, Failure> {
        let runtime = container::find_for_functions(runtime).map_err(Failure::Impossible)?;
        if !rustix::process::geteuid().is_root() && !runtime.takes_users() {
            return Err(Failure::Impossible(format!(
                "containers of {} are started by root here: use sudo, `runtime: podman`, or `program:` in the place of `image:`",
                runtime.name()
            )));
        }
        let needs = |needs| Failure::Impossible(format!("{} needs {needs}", runtime.name()));
        runtime.look().map_err(needs)?;
        // Containers outlive the program that starts them: they become children of this process, not of the first of all.
        let subreaper = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        subreaper.map_err(|why| Failure::Impossible(format!("no parent of containers: {why}")))?;
        let image = Image::open(path).map_err(Failure::Impossible)?;
        let files = container::files(journal);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&files)
            .map_err(Failure::at(&files))?;
        let root = files.join(image.digest());
        if !root.exists() {
            let unpacked = image.unpack(&root);
            unpacked.map_err(|why| Failure::Impossible(format!("{}: {why}", path.display())))?;
        }
        Ok(Self {
            runtime,
            root,
            arguments: if arguments.is_empty() { image.arguments() } else { arguments.to_vec() },
            environment: image.environment(),
            folder: image.folder(),
        })
    }
}

impl Environment for Packed {
    fn start(&self, start: Start<'_>, journal: &Journal) -> Result<Running, Failure> {
        let limits = start.limits;
        let (input, namespace, privileges, calls, descriptors) = match start.packets {
            Packets::Shared(socket) => {
                (Stdio::from(socket), None, &[][..], confine::oci(limits), confine::DESCRIPTORS)
            }
            Packets::Interfaces(namespace, privileges) => (
                Stdio::null(),
                Some(namespace.clone()),
                privileges,
                confine::oci_of_programs(),
                confine::DESCRIPTORS_OF_PROGRAMS,
            ),
        };
        // That of a user who is not root is the container's root, and nobody else here.
        let user = match rustix::process::geteuid().is_root() {
            true => Some(User::take()?),
            false => None,
        };
        let function = Function {
            words: self.arguments.clone(),
            environment: self.environment.clone(),
            folder: self.folder.clone(),
            root: self.root.clone(),
            namespace,
            user: user.as_ref().map_or(0, User::number),
            capabilities: privileges.iter().map(|of| of.capability()).collect(),
            limits,
            descriptors,
            calls,
        };
        let name = format!("{}-{}", start.chain, start.seat);
        let container = Container::of_function(journal, &name, function);
        let [output, errors] = start.output;
        let started = self.runtime.start(&container, [input, output, errors]);
        if started.is_err() {
            self.runtime.end(&container);
        }
        Ok(Running {
            process: started?,
            container: Some((self.runtime, container)),
            groups: Vec::new(),
            _user: user,
        })
    }
}
