// An access list: drops IPv4 packets from addresses that its configuration denies.
//
// Configuration: one `deny ADDRESS` a line.
package main

import (
	"fmt"
	"net/netip"
	"strings"

	"nf.catena/nf"
)

type accessList struct {
	denied map[[4]byte]bool
	seen   nf.Counter
	listed nf.Reason
}

func (a *accessList) Init(config string, setup *nf.Setup) error {
	a.seen, a.listed = setup.Counter("ipv4"), setup.Reason("denied")
	a.denied = make(map[[4]byte]bool)
	for _, line := range strings.Split(config, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 || words[0] != "deny" {
			return fmt.Errorf("expected `deny ADDRESS`, and not %q", line)
		}
		address, err := netip.ParseAddr(words[1])
		if err != nil || !address.Is4() {
			return fmt.Errorf("%q is no IPv4 address", words[1])
		}
		a.denied[address.As4()] = true
	}
	return nil
}

func (a *accessList) Process(batch *nf.Batch) {
	for i := range batch.Packets {
		packet := &batch.Packets[i]
		data := packet.Data()
		if len(data) < 34 || data[12] != 8 || data[13] != 0 {
			continue
		}
		batch.Count(a.seen, 1)
		if a.denied[[4]byte{data[26], data[27], data[28], data[29]}] {
			packet.Drop(a.listed)
		}
	}
}

func main() {
	nf.Main(&accessList{})
}
