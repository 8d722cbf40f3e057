//! Images of network functions: OCI image layouts, as a tar file or a folder.

mod elf;
mod layout;
mod pack;
mod parts;
mod python;
mod unpack;

use std::path::Path;

use serde::{Deserialize, Serialize};

use layout::{Blobs, Descriptor, Index, kind};

pub(crate) use pack::lay_out;
pub use pack::{Packed, Program, pack};

/// The label that says which version of the NF ABI an image's program has.
const ABI_LABEL: &str = "org.catena.nf.abi";

/// Bytes of an index, a manifest or a configuration at most.
const LONGEST: u64 = 4 << 20;

/// What OCI calls the architecture of this host.
pub(crate) const ARCHITECTURE: &str = match std::env::consts::ARCH.as_bytes() {
    b"x86_64" => "amd64",
    b"aarch64" => "arm64",
    _ => std::env::consts::ARCH,
};

/// An image's manifest.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
}

/// An image's configuration.
#[derive(Deserialize, Serialize)]
struct Configuration {
    architecture: String,
    os: String,
    #[serde(default)]
    config: Run,
    rootfs: RootFs,
}

#[derive(Deserialize, Serialize)]
struct RootFs {
    #[serde(rename = "type")]
    kind: String,
    diff_ids: Vec<String>,
}

/// What is run, and how.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Run {
    #[serde(default)]
    entrypoint: Option<Vec<String>>,
    #[serde(default)]
    cmd: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<String>>,
    #[serde(default)]
    working_dir: Option<String>,
    #[serde(default)]
    labels: Option<std::collections::BTreeMap<String, String>>,
}

/// An image that this host can run.
#[derive(Debug)]
pub struct Image {
    blobs: Blobs,
    layers: Vec<Descriptor>,
    /// The digest of its manifest, in hexadecimal digits.
    digest: String,
    run: Run,
}

impl Image {
    /// Opens one, and looks whether this host can run it.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn open(path: &Path) -> Result<Self, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        if !path.exists() {
            let help = "`catena nf pack FOLDER -o FILE` makes one";
            return Err(format!("there is no image {}: {help}", path.display()));
        }
        let blobs = Blobs::open(path).map_err(wrong)?;
        let index: Index = parse("index.json", &blobs.index().map_err(wrong)?).map_err(wrong)?;
        Self::of(blobs, index).map_err(wrong)
    }

    fn of(blobs: Blobs, index: Index) -> Result<Self, String> {
        let mut descriptor = index.of_this_host()?;
        if kind::is_index(&descriptor.media_type) {
            let index: Index = parse("an index", &blobs.small(&descriptor)?)?;
            descriptor = index.of_this_host()?;
        }
        let manifest: Manifest = parse("a manifest", &blobs.small(&descriptor)?)?;
        let written: Configuration = parse("a configuration", &blobs.small(&manifest.config)?)?;
        if (written.os.as_str(), written.architecture.as_str()) != ("linux", ARCHITECTURE) {
            return Err(format!(
                "the image is made for {} on {}, and this host is linux on {ARCHITECTURE}",
                written.os, written.architecture
            ));
        }
        let run = written.config;
        let abi = run.labels.iter().flatten().find(|(name, _)| *name == ABI_LABEL);
        if let Some((_, version)) = abi.filter(|(_, of)| **of != nf::VERSION.to_string()) {
            return Err(format!(
                "its program has version {version} of the NF ABI, and this host {}: build it anew with the runtime of this \
                 catena (`catena nf init`), and pack it again",
                nf::VERSION
            ));
        }
        let digest = descriptor.hex()?.to_string();
        let image = Self { blobs, layers: manifest.layers, digest, run };
        match image.arguments().is_empty() {
            true => {
                Err("the image has no entrypoint, so nothing is run: `catena nf pack` sets one, \
                         and so does ENTRYPOINT in a Dockerfile"
                    .into())
            }
            false => Ok(image),
        }
    }

    /// What names it and nothing else.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// The program, as the image's files have it, and its arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        self.run.entrypoint.iter().chain(&self.run.cmd).flatten().cloned().collect()
    }

    /// Variables of its environment, `NAME=VALUE`.
    pub(crate) fn environment(&self) -> Vec<String> {
        self.run.env.clone().unwrap_or_default()
    }

    /// The folder that it runs in.
    pub(crate) fn folder(&self) -> String {
        self.run.working_dir.clone().filter(|of| of.starts_with('/')).unwrap_or_else(|| "/".into())
    }

    /// Writes its files to a folder, which is made.
    ///
    /// # Errors
    /// If one is not what its digest says, or would go elsewhere.
    pub(crate) fn unpack(&self, to: &Path) -> Result<(), String> {
        std::fs::create_dir_all(to).map_err(|why| format!("{}: {why}", to.display()))?;
        let mut left = unpack::Left::default();
        for layer in &self.layers {
            self.blobs.check(layer)?;
            let bytes = self.blobs.reader(layer)?;
            unpack::layer(bytes, &layer.media_type, to, &mut left)?;
        }
        Ok(())
    }
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes)
        .map_err(|why| format!("{what} of the image cannot be read: {why}"))
}

#[cfg(test)]
mod tests;
