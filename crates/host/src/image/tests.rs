use std::path::PathBuf;

use hmac_sha256::Hash;
use serde_json::{Value, json};

use super::layout::hex;
use super::*;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catena-image-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("image/blobs/sha256")).unwrap();
        Self(path)
    }

    fn image(&self) -> PathBuf {
        self.0.join("image")
    }

    fn blob(&self, kind: &str, bytes: &[u8]) -> Value {
        let digits = hex(&Hash::hash(bytes));
        std::fs::write(self.image().join("blobs/sha256").join(&digits), bytes).unwrap();
        json!({ "mediaType": kind, "digest": format!("sha256:{digits}"), "size": bytes.len() })
    }

    /// An image with these layers, whose configuration and index are changed.
    fn make(&self, layers: &[Value], change: impl Fn(&mut Value, &mut Value)) {
        let mut config = json!({
            "architecture": ARCHITECTURE,
            "os": "linux",
            "config": { "Entrypoint": ["/nf"], "Labels": { ABI_LABEL: nf::VERSION.to_string() } },
            "rootfs": { "type": "layers", "diff_ids": [] },
        });
        let mut index = json!({ "schemaVersion": 2, "manifests": [] });
        change(&mut config, &mut index);
        let config = self.blob(kind::CONFIG, config.to_string().as_bytes());
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": layers });
        let manifest = self.blob(kind::MANIFEST, manifest.to_string().as_bytes());
        let all = index["manifests"].as_array_mut().unwrap();
        match all.first_mut() {
            None => all.push(manifest),
            Some(first) => {
                first.as_object_mut().unwrap().extend(manifest.as_object().unwrap().clone())
            }
        }
        std::fs::write(self.image().join("index.json"), index.to_string()).unwrap();
        std::fs::write(self.image().join("oci-layout"), "{}").unwrap();
    }

    fn refused(&self) -> String {
        Image::open(&self.image()).unwrap_err()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A layer of files: a kind, a path as it is written, and bytes or where a link leads.
fn layer(files: &[(tar::EntryType, &str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (kind, path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o4755);
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        let is_file = kind.is_file();
        if !is_file {
            let link = &mut header.as_old_mut().linkname;
            link[..content.len()].copy_from_slice(content.as_bytes());
        }
        let bytes = if is_file { content.as_bytes() } else { b"" };
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

const FILE: tar::EntryType = tar::EntryType::Regular;
const LINK: tar::EntryType = tar::EntryType::Symlink;
const HARD: tar::EntryType = tar::EntryType::Link;
const FOLDER: tar::EntryType = tar::EntryType::Directory;
const DEVICE: tar::EntryType = tar::EntryType::Char;

#[test]
fn an_image_that_cannot_be_run_says_why() {
    let folder = Folder::new("refused");
    assert!(folder.refused().contains("no OCI image layout"));
    let missing = Image::open(&folder.0.join("none.oci")).unwrap_err();
    assert!(
        missing.contains("there is no image") && missing.contains("catena nf pack"),
        "{missing}"
    );
    folder.make(&[], |_, _| {});
    assert_eq!(Image::open(&folder.image()).unwrap().arguments(), ["/nf"]);
    folder.make(&[], |config, _| config["architecture"] = "s390x".into());
    assert!(folder.refused().contains("made for linux on s390x"));
    folder.make(&[], |_, index| {
        index["manifests"] = json!([{ "platform": { "os": "linux", "architecture": "s390x" } }]);
    });
    assert!(folder.refused().contains("made for linux on s390x"));
    folder.make(&[], |config, _| config["config"] = json!({}));
    assert!(folder.refused().contains("has no entrypoint"));
    folder.make(&[], |config, _| config["config"]["Labels"][ABI_LABEL] = "0".into());
    assert!(folder.refused().contains("version 0 of the NF ABI"));
    folder.make(&[], |config, _| config["rootfs"] = "x".into());
    assert!(folder.refused().contains("a configuration of the image cannot be read"));
    folder.make(&[], |_, _| {});
    for blob in std::fs::read_dir(folder.image().join("blobs/sha256")).unwrap() {
        std::fs::write(blob.unwrap().path(), "{}").unwrap();
    }
    assert!(folder.refused().contains("the image is damaged"));
    // A file that is no tar file, and a digest that leads elsewhere.
    std::fs::write(folder.0.join("text.oci"), "kind: HostChain\n".repeat(100)).unwrap();
    assert!(Image::open(&folder.0.join("text.oci")).unwrap_err().contains("no OCI image layout"));
    let index = json!({ "schemaVersion": 2, "manifests": [{ "mediaType": "x", "digest": "sha256:../../x", "size": 1 }] });
    std::fs::write(folder.image().join("index.json"), index.to_string()).unwrap();
    assert!(folder.refused().contains("is no digest"));
}

#[test]
fn layers_are_laid_one_over_the_other() {
    let folder = Folder::new("layers");
    let first = layer(&[
        (FOLDER, "bin/", ""),
        (FILE, "bin/nf", "one"),
        (FILE, "bin/old", "x"),
        (FOLDER, "all/", ""),
        (FILE, "all/a", "x"),
        (DEVICE, "bin/device", ""),
        (LINK, "sh", "bin/nf"),
    ]);
    let second = layer(&[
        (FILE, "bin/nf", "two"),
        (FILE, "bin/.wh.old", ""),
        (FILE, "all/.wh..wh..opq", ""),
        (FILE, "all/b", "y"),
        (HARD, "bin/again", "bin/nf"),
    ]);
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut zipped, &second).unwrap();
    let layers = [
        folder.blob(kind::LAYER, &first),
        folder.blob(&format!("{}+gzip", kind::LAYER), &zipped.finish().unwrap()),
    ];
    folder.make(&layers, |_, _| {});
    let to = folder.0.join("files");
    Image::open(&folder.image()).unwrap().unpack(&to).unwrap();
    let text = |path: &str| std::fs::read_to_string(to.join(path)).unwrap_or_default();
    assert_eq!(
        (text("bin/nf"), text("bin/again"), text("sh")),
        ("two".into(), "two".into(), "two".into())
    );
    assert_eq!(
        (text("all/b"), text("all/a"), text("bin/old")),
        ("y".into(), String::new(), String::new())
    );
    assert!(!to.join("bin/device").exists());
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &to.join("bin/nf").metadata().unwrap().permissions(),
    );
    assert_eq!(mode & 0o7777, 0o755, "no set-user-ID bit");
    // A kind of layer that is not read.
    folder.make(&[folder.blob(&format!("{}+zstd", kind::LAYER), &first)], |_, _| {});
    let why = Image::open(&folder.image()).unwrap().unpack(&folder.0.join("zstd")).unwrap_err();
    assert!(why.contains("+zstd is not read"), "{why}");
}

#[test]
fn nothing_of_a_layer_goes_outside_of_its_folder() {
    let folder = Folder::new("outside");
    let outside = folder.0.join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("kept"), "kept").unwrap();
    let there = outside.display().to_string();
    let up = "../outside";
    for (number, files) in [
        vec![(FILE, "../outside/new", "x")],
        vec![(LINK, "link", there.as_str()), (FILE, "link/new", "x")],
        vec![(LINK, "link", up), (FILE, "link/new", "x")],
        vec![(LINK, "link", up), (FILE, "link/kept", "x")],
        vec![(LINK, "link", up), (FILE, "link/.wh.kept", "")],
        vec![(LINK, "link", up), (FILE, "link/.wh..wh..opq", "")],
        vec![(FILE, "../outside/.wh.kept", "")],
        vec![(HARD, "mine", "../outside/kept"), (FILE, "mine", "x")],
        vec![(FILE, "a/.wh...", "")],
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = layer(&files);
        let to = folder.0.join(format!("files{number}"));
        std::fs::create_dir_all(&to).unwrap();
        let mut left = unpack::Left::default();
        let _ = unpack::layer(Box::new(std::io::Cursor::new(bytes)), kind::LAYER, &to, &mut left);
        let names: Vec<_> =
            std::fs::read_dir(&outside).unwrap().map(|of| of.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"], "{files:?}");
        assert_eq!(std::fs::read(outside.join("kept")).unwrap(), b"kept", "{files:?}");
    }
}

#[test]
fn hostile_bytes_are_refused() {
    let folder = Folder::new("hostile");
    let good = layer(&[(FOLDER, "bin/", ""), (FILE, "bin/nf", "one"), (LINK, "sh", "bin/nf")]);
    let mut random = fastrand::Rng::with_seed(7);
    for number in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..random.usize(1..8) {
            let at = random.usize(..bytes.len().min(2048));
            bytes[at] = random.u8(..);
        }
        let to = folder.0.join(format!("files{number}"));
        std::fs::create_dir_all(&to).unwrap();
        let mut left = unpack::Left::default();
        let _ = unpack::layer(
            Box::new(std::io::Cursor::new(bytes.clone())),
            kind::LAYER,
            &to,
            &mut left,
        );
        std::fs::write(folder.0.join("hostile.oci"), bytes).unwrap();
        assert!(Image::open(&folder.0.join("hostile.oci")).is_err());
    }
}
