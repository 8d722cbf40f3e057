// ThirdParty(KEYWORDS) -- a program of somebody else, in a process of its own
//
// Packets go through a program that knows nothing of Catena: the kernel's NAT with its rules, a proxy, an IDS, a bridge. It is a
// program of this host, or an image, in a network namespace of its own with two interfaces. What comes to input 0 is received by
// its `eth0`, and what it sends by `eth1` leaves on output 0; input 1 is `eth1` and output 1 `eth0`, the path back. With one
// input and output, nothing goes back.
//
// Packets are Ethernet frames. They come out as from an interface: nothing is known of them, and the chain behind decides anew.
// The parts of the chain before and behind are synthesised each by itself. With KEEPS, which says what the program does
// not change, they get the annotations back that they had before it, in both directions; and frames that show that this is not true
// are counted.
//
// The program is started before the chain runs and again when it ends, as a user of its own, with no privileges but those that
// PRIVILEGES names, and within MEMORY and THREADS. While it is not there, packets to it wait in its interface, or are lost.
// `catena host ps`, `stats`, `logs` and `restart` show it as `run-PROCESS-NUMBER-NAME`.
//
// A program that is made with the NF runtime (`catena nf init`) needs no interfaces: with `API nf`, packets come to it in shared memory.
// It stands between one input and one output.
//
// = KEYWORDS
//
// PROGRAM (text): the program's path, from the configuration's folder, and its arguments.
// IMAGE (text): instead of PROGRAM, an OCI layout, and arguments in the place of its own.
// ETH0, ETH1 (addresses): addresses of its interfaces, with the lengths of their prefixes.
// ROUTES (routes): its routes, such as `default via 10.2.0.254`.
// FORWARD (bool, default false): whether the kernel forwards between its interfaces.
// KEEPS (words): what the program keeps of each frame, such as `ip.src ip.dst l4`; see RestoreAnno. With several workers, it
// has to be that.
// STRICT (bool, default false): whether frames are dropped, as `not-kept`, that have in these fields what did not come to the program.
// API (veth or nf, default veth), CONFIG (text), WRITES (none, payload or all): of a program that is made with the NF runtime.
// RUNTIME, PRIVILEGES, MEMORY, THREADS, CORE: those of Process.
//
// = HANDLERS
//
// program.device (read): what the names of its devices begin with, in messages.
// there.count, back.count (read): frames that the program sent.
// kept.restored, kept_back.restored (read): frames that got their annotations back.
// kept.unknown, kept_back.unknown (read): frames with fields that did not come to the program.
//
// = IPV6
//
// Frames of IPv6 pass as others do. IPv6 is off in the program's namespace unless ETH0 or ETH1 has an address of it.
//
// = EXAMPLE
//
// // The kernel's own router, between two parts of a chain.
// box :: ThirdParty(PROGRAM /bin/sleep infinity, FORWARD true, ETH0 10.1.0.1/24, ETH1 10.2.0.1/24);
// FromDevice(lan) -> [0] box [0] -> ToDevice(wan);
// FromDevice(wan) -> [1] box [1] -> ToDevice(lan);
//
// = SEE ALSO
//
// Process, RestoreAnno, Mirror, DPI

elementclass ThirdParty { KEEPS $keeps, STRICT $strict, __REST__ $options |
  program :: Process($options);
  kept :: RestoreAnno(${keeps:-}, STRICT ${strict:-false});
  kept_back :: RestoreAnno(${keeps:-}, STRICT ${strict:-false});
  input[0] -> [0] kept [0] -> ToDevice(program.eth0);
  there :: FromDevice(program.eth1) -> [1] kept [1] -> [0] output;
  input[1] -> [0] kept_back [0] -> ToDevice(program.eth1);
  back :: FromDevice(program.eth0) -> [1] kept_back [1] -> [1] output;
|| KEEPS $keeps, STRICT $strict, __REST__ $options |
  program :: Process($options);
  kept :: RestoreAnno(${keeps:-}, STRICT ${strict:-false});
  input -> [0] kept [0] -> ToDevice(program.eth0);
  there :: FromDevice(program.eth1) -> [1] kept [1] -> output;
}
