//! Where an image's blobs are: in a folder, or in a tar file that is read in place.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};

use super::{ARCHITECTURE, LONGEST};

/// Files of a layout at most.
const MOST_FILES: usize = 10_000;

/// The kinds of blobs.
pub(super) mod kind {
    pub(in super::super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    pub(in super::super) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    pub(in super::super) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

    /// Whether it lists manifests.
    pub(in super::super) fn is_index(kind: &str) -> bool {
        kind == "application/vnd.oci.image.index.v1+json"
            || kind == "application/vnd.docker.distribution.manifest.list.v2+json"
    }
}

/// What a blob is, by its digest.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
}

impl Descriptor {
    /// The hexadecimal digits of its digest.
    pub(super) fn hex(&self) -> Result<&str, String> {
        let digits = self.digest.strip_prefix("sha256:").filter(|of| {
            of.len() == 64 && of.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        digits.ok_or_else(|| format!("'{}' is no digest: `sha256:` and 64 digits", self.digest))
    }
}

/// A list of manifests.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    pub(super) schema_version: u32,
    pub(super) manifests: Vec<Descriptor>,
}

impl Index {
    /// The first that says that it is made for this host, or does not say for which.
    pub(super) fn of_this_host(self) -> Result<Descriptor, String> {
        let others: Vec<String> = self
            .manifests
            .iter()
            .filter_map(|of| of.platform.as_ref())
            .map(|of| format!("{} on {}", of.os, of.architecture))
            .collect();
        let is_ours = |of: &Descriptor| {
            let platform = of.platform.as_ref();
            platform.is_none_or(|of| of.os == "linux" && of.architecture == ARCHITECTURE)
        };
        match self.manifests.into_iter().find(is_ours) {
            Some(found) => Ok(found),
            None if others.is_empty() => Err("the layout has no image".into()),
            None => Err(format!(
                "the image is made for {}, and this host is linux on {ARCHITECTURE}",
                others.join(", ")
            )),
        }
    }
}

/// Blobs by their digests.
#[derive(Debug)]
pub(super) enum Blobs {
    Folder(PathBuf),
    /// By name: where in the file it begins, and its bytes.
    Tar(File, HashMap<String, (u64, u64)>),
}

const NO_LAYOUT: &str = "this is no OCI image layout: it has no `oci-layout` and `index.json`; images of `docker save` before \
    version 25 are none";

impl Blobs {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let blobs = match path.is_dir() {
            true => Self::Folder(path.to_path_buf()),
            false => Self::tar(path)?,
        };
        match blobs.file("oci-layout") {
            Ok(_) => Ok(blobs),
            Err(_) => Err(NO_LAYOUT.into()),
        }
    }

    fn tar(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|why| why.to_string())?;
        let mut places = HashMap::new();
        let mut archive = tar::Archive::new(BufReader::new(&file));
        let entries = archive.entries_with_seek().map_err(|why| why.to_string())?;
        for entry in entries {
            let entry = entry.map_err(|_| NO_LAYOUT)?;
            if entry.header().entry_type().is_file() {
                let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                let name = name.strip_prefix("./").unwrap_or(&name).to_string();
                places.insert(name, (entry.raw_file_position(), entry.size()));
            }
            if places.len() > MOST_FILES {
                return Err(format!("more than {MOST_FILES} files"));
            }
        }
        drop(archive);
        Ok(Self::Tar(file, places))
    }

    fn file(&self, name: &str) -> Result<Box<dyn Read>, String> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                let file = File::open(&path);
                Ok(Box::new(file.map_err(|why| format!("{}: {why}", path.display()))?))
            }
            Self::Tar(file, places) => {
                let (at, length) = places.get(name).ok_or_else(|| format!("there is no {name}"))?;
                let mut file = file.try_clone().map_err(|why| why.to_string())?;
                file.seek(SeekFrom::Start(*at)).map_err(|why| why.to_string())?;
                Ok(Box::new(file.take(*length)))
            }
        }
    }

    pub(super) fn index(&self) -> Result<Vec<u8>, String> {
        all(self.file("index.json")?)
    }

    /// What reads a blob; its digest is not looked at.
    pub(super) fn reader(&self, of: &Descriptor) -> Result<Box<dyn Read>, String> {
        self.file(&format!("blobs/sha256/{}", of.hex()?))
    }

    /// Whether a blob is what its digest says.
    pub(super) fn check(&self, of: &Descriptor) -> Result<(), String> {
        let mut reader = self.reader(of)?;
        let mut hash = Hash::new();
        let mut bytes = vec![0; 1 << 16];
        loop {
            match reader.read(&mut bytes).map_err(|why| why.to_string())? {
                0 => break,
                count => hash.update(&bytes[..count]),
            }
        }
        fits(of, &hash.finalize())
    }

    /// A blob that is small, after its digest was looked at.
    pub(super) fn small(&self, of: &Descriptor) -> Result<Vec<u8>, String> {
        let bytes = all(self.reader(of)?)?;
        fits(of, &Hash::hash(&bytes)).map(|()| bytes)
    }
}

fn all(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    match bytes.len() as u64 > LONGEST {
        true => Err(format!("more than {LONGEST} bytes of JSON")),
        false => Ok(bytes),
    }
}

fn fits(of: &Descriptor, hash: &[u8; 32]) -> Result<(), String> {
    match hex(hash) == of.hex()? {
        true => Ok(()),
        false => Err(format!("the image is damaged: a blob is not what {} names", of.digest)),
    }
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
