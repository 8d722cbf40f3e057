// Three address translators, one behind the other, as in a home behind a provider behind a
// provider: each gives the flows that pass it a port of its own. Answers come back through all.
//
//   catena run examples/nested-nats.click -h home.table_size

elementclass Napt { $public |
  input[0] -> [0] rw :: IPRewriter(pattern $public 1024-65535# - - 0 1, drop);
  input[1] -> [1] rw;
  rw[0] -> [0] output;
  rw[1] -> [1] output;
}

home :: Napt(192.168.1.1);
street :: Napt(100.64.0.1);
provider :: Napt(198.51.100.1);

FromDump(lan.pcap.gz) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
  -> IPClassifier(tcp or udp) -> [0] home;
home[0] -> [0] street;
street[0] -> [0] provider;
provider[0] -> out :: Tee -> Unstrip(14) -> ToDump(nested-nats.out.pcap);

// Every host out there answers; nobody else is let in.
out[1] -> IPMirror -> [1] provider;
FromDump(wan.pcap.gz) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [1] provider;
provider[1] -> [1] street;
street[1] -> [1] home;
home[1] -> Unstrip(14) -> ToDump(nested-nats.back.pcap);
