// functions.click: two network functions

// Drops telnet; lets TCP, UDP and ICMP pass.
elementclass Firewall {
  input -> acl :: IPFilter(deny tcp dst port 23, allow tcp or udp or icmp, deny all) -> output;
}

// Gives all hosts inside one public address. Input and output 0 lead outside, 1 lead inside.
elementclass Nat { $public |
  flows :: IPRewriter(pattern $public 1024-65535# - - 0 1, drop);
  pings :: ICMPPingRewriter(pattern $public 1024-65535# - - 0 1, drop);

  input[0] -> leaving :: IPClassifier(icmp type echo, tcp or udp, -);
  leaving[0] -> [0] pings;
  leaving[1] -> [0] flows;
  leaving[2] -> Discard;

  input[1] -> coming :: IPClassifier(icmp type echo-reply, tcp or udp, -);
  coming[0] -> [1] pings;
  coming[1] -> [1] flows;
  coming[2] -> Discard;

  flows[0] -> [0] output;
  pings[0] -> [0] output;
  flows[1] -> [1] output;
  pings[1] -> [1] output;
}
