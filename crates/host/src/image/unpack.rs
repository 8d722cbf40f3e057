//! Writing a layer's files to a folder. A layer is made by somebody else: nothing of it goes outside of the folder, and only
//! folders, files and links come to be.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// What an image may still bring.
#[derive(Debug)]
pub(super) struct Left {
    bytes: u64,
    files: u32,
}

impl Default for Left {
    fn default() -> Self {
        Self { bytes: 4 << 30, files: 200_000 }
    }
}

/// Marks of what is in lower layers and not in the image.
const GONE: &str = ".wh.";
const ALL_GONE: &str = ".wh..wh..opq";

/// Writes one layer over those before it.
pub(super) fn layer(
    bytes: Box<dyn Read>,
    kind: &str,
    to: &Path,
    left: &mut Left,
) -> Result<(), String> {
    let bytes: Box<dyn Read> = match kind.rsplit(['.', '+']).next() {
        Some("tar") => bytes,
        Some("gzip") => Box::new(MultiGzDecoder::new(bytes)),
        _ => {
            return Err(format!(
                "a layer of kind {kind} is not read: layers are tar files, as they are or with gzip"
            ));
        }
    };
    let root = to.canonicalize().map_err(|why| format!("{}: {why}", to.display()))?;
    let wrong = |why: std::io::Error| format!("a layer of the image cannot be unpacked: {why}");
    let mut archive = tar::Archive::new(bytes);
    // No set-user-ID bits, and no owners.
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    for entry in archive.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let path = entry.path().map_err(wrong)?.into_owned();
        let few = |what: &str| format!("the image has more than {what}");
        left.files = left.files.checked_sub(1).ok_or_else(|| few("200,000 files"))?;
        left.bytes = left.bytes.checked_sub(entry.size()).ok_or_else(|| few("4 GiB"))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(gone) = name.strip_prefix(GONE) {
            if let Some(folder) = inside(&root, path.parent().unwrap_or(Path::new(""))) {
                let removed = match name == ALL_GONE {
                    true => empty(&folder),
                    false if gone.is_empty() || gone == "." || gone == ".." => Ok(()),
                    false => remove(&folder.join(gone)),
                };
                removed.map_err(wrong)?;
            }
            continue;
        }
        let kind = entry.header().entry_type();
        let is_wanted = kind.is_dir() || kind.is_file() || kind.is_symlink() || kind.is_hard_link();
        // Devices are the runtime's.
        if !is_wanted {
            continue;
        }
        if !kind.is_dir()
            && let Some(folder) = inside(&root, path.parent().unwrap_or(Path::new("")))
            && let Some(name) = path.file_name()
        {
            remove(&folder.join(name)).map_err(wrong)?;
        }
        if !entry.unpack_in(&root).map_err(wrong)? {
            return Err(format!("{} of the image would be outside of its folder", path.display()));
        }
    }
    Ok(())
}

/// The folder of that path below a root, if there is one.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let is_good = |of: Component<'_>| matches!(of, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_good) {
        return None;
    }
    root.join(path).canonicalize().ok().filter(|found| found.starts_with(root) && found.is_dir())
}

fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(of) if of.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(why) => Err(why),
    };
    match removed {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn empty(folder: &Path) -> std::io::Result<()> {
    fs::read_dir(folder)?.try_for_each(|entry| remove(&entry?.path()))
}
