// A quota: so many packets of each flow pass. The count of a flow is kept as its state: it outlives the function, and goes with
// the flow.
//
// Configuration: how many.
package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"nf.catena/nf"
)

type quota struct {
	most          uint64
	flows, unread nf.Counter
	above         nf.Reason
}

func (q *quota) Init(config string, setup *nf.Setup) error {
	var err error
	if q.most, err = strconv.ParseUint(strings.TrimSpace(config), 10, 64); err != nil || q.most == 0 {
		return fmt.Errorf("expected a number of packets")
	}
	q.flows, q.unread, q.above = setup.Counter("flows"), setup.Counter("unread"), setup.Reason("above")
	setup.State(nf.FieldAll)
	return nil
}

func (q *quota) Process(batch *nf.Batch) {
	for i := range batch.Packets {
		packet := &batch.Packets[i]
		flow, ok := packet.Flow()
		if !ok {
			continue
		}
		value, err := packet.Read(flow)
		if err != nil {
			batch.Count(q.unread, 1)
			continue
		}
		had := uint64(0)
		if len(value) == 8 {
			had = binary.LittleEndian.Uint64(value)
		} else {
			batch.Count(q.flows, 1)
		}
		if had == q.most {
			packet.Drop(q.above)
			continue
		}
		var count [8]byte
		binary.LittleEndian.PutUint64(count[:], had+1)
		_ = packet.Update(flow, count[:])
	}
}

func main() { nf.Main(&quota{}) }
