// Network functions that customers' chains are made of. Each takes frames and gives frames.

// Access list: what no rule allows is dropped.
elementclass ACL { __REST__ $rules |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPFilter($rules) -> Unstrip(14) -> output;
}

// Router with an address of its own: what expired or has no route is dropped.
elementclass Router { $mac, $next, __REST__ $routes |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
    -> rt :: RadixIPLookup($routes) -> DecIPTTL -> EtherEncap(0x0800, $mac, $next) -> output;
}

// One public address for all flows that begin behind it.
elementclass NAPT { $public |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> kind :: IPClassifier(tcp or udp, -);
  kind[0] -> IPRewriter(pattern $public 1024-65535# - - 0 0) -> Unstrip(14) -> output;
  kind[1] -> Discard;
}

// Counts flows' packets and bytes.
elementclass Monitor { input -> Counter -> output; }

// At most so many bits a second, for all packets together.
elementclass Limiter { $rate |
  input -> Queue(1000) -> BandwidthShaper($rate) -> Unqueue -> output;
}

// Web traffic to the first output, all other to the second.
elementclass Web {
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> kind :: IPClassifier(tcp dst port 80 or 443, -);
  kind[0] -> Unstrip(14) -> [0] output;
  kind[1] -> Unstrip(14) -> [1] output;
}
