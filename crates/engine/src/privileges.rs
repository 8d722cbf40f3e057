//! Giving up what a run does not need: `catena run --user`.

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

/// Whom a run is left to.
pub struct User {
    name: String,
    uid: Uid,
    gid: Gid,
}

/// To open interfaces and set them up, also later when they come back or a configuration changes;
/// to attach programs to them and take them away; to lock memory that is shared with the kernel.
fn needed() -> CapabilitySet {
    CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::IPC_LOCK | CapabilitySet::BPF
}

impl User {
    /// The user of a name in /etc/passwd, or of a number.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<Self, String> {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (known, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
            let is_it = known == name || uid == name;
            is_it.then(|| Some((uid.parse().ok()?, gid.parse().ok()?))).flatten()
        });
        let number = || name.parse().ok().map(|id: u32| (id, id));
        let (uid, gid) = found
            .or_else(number)
            .filter(|(uid, gid)| *uid < u32::MAX && *gid < u32::MAX)
            .ok_or_else(|| format!("{name}: there is no such user in /etc/passwd"))?;
        if !geteuid().is_root() {
            return Err(format!("{name}: only root can become another user"));
        }
        Ok(Self { name: name.to_string(), uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) })
    }

    /// The user's number, and that of the group.
    pub fn ids(&self) -> (Uid, Gid) {
        (self.uid, self.gid)
    }

    /// Does something as the user, in a thread that becomes it for good, while this one stays what
    /// it is.
    ///
    /// # Errors
    /// Why it cannot become the user, or what the work says.
    pub fn act<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let acting = || self.become_it().and_then(|()| work());
        let dead = |_| Err(format!("{}: a thread died", self.name));
        std::thread::scope(|scope| scope.spawn(acting).join().unwrap_or_else(dead))
    }

    /// Becomes the user for good, with nothing but the capabilities that a chain on interfaces
    /// needs. It is this thread that does: to be called before there are others, since those that
    /// are started later have what this one has.
    ///
    /// # Errors
    /// Why not.
    pub fn become_it(&self) -> Result<(), String> {
        let explain = |e: rustix::io::Errno| format!("{}: {e}", self.name);
        for capability in CapabilitySet::all().difference(needed()).iter() {
            // One that the kernel does not know is no harm.
            let _ = remove_capability_from_bounding_set(capability);
        }
        set_keep_capabilities(true).map_err(explain)?;
        set_thread_groups(&[self.gid]).map_err(explain)?;
        let (uid, gid) = (Some(self.uid), Some(self.gid));
        set_thread_res_gid(gid, gid, gid).map_err(explain)?;
        set_thread_res_uid(uid, uid, uid).map_err(explain)?;
        set_keep_capabilities(false).map_err(explain)?;
        let own = rustix::thread::capabilities(None).map_err(explain)?.permitted & needed();
        let sets =
            CapabilitySets { effective: own, permitted: own, inheritable: CapabilitySet::empty() };
        set_capabilities(None, sets).map_err(explain)?;
        set_no_new_privs(true).map_err(explain)
    }
}
