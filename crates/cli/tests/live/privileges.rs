//! What root does in folders that other users own: nothing that they could turn elsewhere.

use std::fs::{metadata, read_to_string, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use crate::CATENA;
use lab::live::{Lab, possible};

/// The user that `nobody` is, and its group.
const NOBODY: u32 = 65534;

/// Makes a folder that belongs to nobody.
fn folder_of_nobody(lab: &Lab, name: &str) -> PathBuf {
    let folder = lab.folder().join(name);
    std::fs::create_dir(&folder).unwrap();
    chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

/// Makes a link that belongs to nobody.
fn link_of_nobody(target: &Path, link: &Path) {
    symlink(target, link).unwrap();
    lchown(link, Some(NOBODY), Some(NOBODY)).unwrap();
}

const CHAIN: &str = "FromDevice(left) -> Discard;";

#[test]
fn the_control_socket_is_the_users_wherever_it_is() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let theirs = folder_of_nobody(&lab, "theirs");
    // In root's folder root makes it, and folders above it.
    for socket in [lab.folder().join("root.sock"), lab.folder().join("new/s"), theirs.join("s")] {
        let path = socket.to_str().unwrap();
        let options = ["--in", "left=eth0", "--user", "nobody", "--control", path];
        let running = lab.run(CHAIN, &options);
        let found = metadata(&socket).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (NOBODY, NOBODY, 0o600));
        running.stop();
    }
    assert_eq!(metadata(lab.folder().join("new")).unwrap().uid(), NOBODY);
    assert!(!theirs.join("s").exists());
}

/// Root has no part in what is made in a folder of others: where the user must not write, nothing
/// is made.
#[test]
fn in_a_users_folder_root_does_nothing() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let theirs = folder_of_nobody(&lab, "theirs");
    set_permissions(&theirs, PermissionsExt::from_mode(0o555)).unwrap();
    for socket in [theirs.join("s"), theirs.join("new/s")] {
        let path = socket.to_str().unwrap();
        let options = ["--in", "left=eth0", "--user", "nobody", "--control", path];
        let told = lab.refusal(CHAIN, &options);
        assert!(told.contains(&format!("--control {path}: Permission denied")), "{told}");
        assert!(!socket.exists() && !theirs.join("new").exists());
    }
}

/// A link that somebody else made leads root nowhere, whether it stands for a folder or a file.
#[test]
fn links_of_others_are_not_followed() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let (theirs, ours) = (folder_of_nobody(&lab, "theirs"), lab.folder().join("ours"));
    std::fs::create_dir(&ours).unwrap();
    std::fs::write(ours.join("file"), "as it was").unwrap();
    link_of_nobody(&ours, &theirs.join("folder"));
    link_of_nobody(&ours.join("file"), &theirs.join("file"));
    symlink(ours.join("mine"), theirs.join("mine")).unwrap();
    let at = |name: &str| theirs.join(name).display().to_string();
    let (file, within, socket) = (at("file"), at("folder/new"), at("folder/s"));
    let capture = |path: &str| format!("left={path}.pcap");
    link_of_nobody(&ours.join("file"), &theirs.join("file.pcap"));
    let (capture_file, capture_within) = (capture(&file), capture(&within));
    let sends = "Idle -> ToDevice(left);";
    let [scripted, dumped, asking] = [
        format!("Script(print >{file} 'hello', stop);"),
        format!("Idle -> ToDump({within});"),
        format!("ControlSocket(unix, {socket});"),
    ];
    for (chain, options) in [
        (sends, &["--out", &capture_file][..]),
        (sends, &["--out", &capture_within]),
        (&scripted, &[]),
        (&dumped, &[]),
        (&asking, &[]),
        ("Idle -> Discard;", &["-u", &socket]),
        ("Idle -> Discard;", &["--control", &socket]),
    ] {
        let told = lab.refusal(chain, options);
        let why = "is a link of another user (number 65534); such links are not followed";
        assert!(told.contains(why), "{chain} {options:?}: {told}");
    }
    assert_eq!(read_to_string(ours.join("file")).unwrap(), "as it was");
    assert_eq!(ours.read_dir().unwrap().count(), 1);
    // Root's own are.
    let mine = format!("Script(print >{} 'hello', stop);", at("mine"));
    let (well, _, told) = lab.start_on("middle", &mine, &[]).end();
    assert!(well, "{told}");
    assert_eq!(read_to_string(ours.join("mine")).unwrap(), "hello\n");
}
