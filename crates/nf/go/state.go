package nf

import (
	"encoding/binary"
	"errors"
	"syscall"
)

// Fields of a packet that make its flow.
const (
	FieldSource = 1 << iota
	FieldDestination
	FieldProtocol
	FieldSourcePort
	FieldDestinationPort
	// FieldAll is the 5-tuple.
	FieldAll = 31
)

// LongestValue is how many bytes are kept of a flow at most.
const LongestValue = 1024

// ErrAway is what Read says of a flow whose state cannot be read now.
var ErrAway = errors.New("the state cannot be read now")

// ErrTooLong is what Update says of a value that has more than LongestValue bytes.
var ErrTooLong = errors.New("the value has more than 1024 bytes")

const flowLength = 40

// Flow is a match: fields, IP version, protocol, a zero, source and destination port, source and destination address. Fields
// that it has not are 0 and match all. Ports and addresses are in network order; ports are 0 of what has none, and of fragments.
type Flow [flowLength]byte

// Reverse is the flow of the opposite direction.
func (f Flow) Reverse() Flow {
	of := f
	copy(of[4:6], f[6:8])
	copy(of[6:8], f[4:6])
	copy(of[8:24], f[24:40])
	copy(of[24:40], f[8:24])
	of[0] = f[0]&FieldProtocol | f[0]&(FieldSource|FieldSourcePort)<<1 | f[0]&(FieldDestination|FieldDestinationPort)>>1
	return of
}

func flowOf(frame []byte, fields byte) (flow Flow, known bool) {
	at := 12
	for i := 0; i < 2; i++ {
		if len(frame) >= at+2 && (frame[at] == 0x81 && frame[at+1] == 0 || frame[at] == 0x88 && frame[at+1] == 0xa8) {
			at += 4
		}
	}
	if len(frame) < at+2 {
		return Flow{}, false
	}
	kind, packet, ports := binary.BigEndian.Uint16(frame[at:]), frame[at+2:], 0
	switch {
	case kind == 0x0800 && len(packet) >= 20 && packet[0]>>4 == 4:
		header := int(packet[0]&15) * 4
		if header < 20 || len(packet) < header {
			return Flow{}, false
		}
		flow[1], flow[2] = 4, packet[9]
		copy(flow[8:12], packet[12:16])
		copy(flow[24:28], packet[16:20])
		if packet[6]&0x3f == 0 && packet[7] == 0 {
			ports = header
		}
	case kind == 0x86dd && len(packet) >= 40 && packet[0]>>4 == 6:
		flow[1] = 6
		copy(flow[8:40], packet[8:40])
		flow[2], ports = extensions(packet)
	default:
		return Flow{}, false
	}
	if protocol := flow[2]; ports > 0 && ports+4 <= len(packet) && (protocol == 6 || protocol == 17 || protocol == 132) {
		copy(flow[4:8], packet[ports:])
	}
	flow[0] = fields & FieldAll
	for bit, span := range [...][2]int{{8, 24}, {24, 40}, {2, 3}, {4, 6}, {6, 8}} {
		if fields&(1<<bit) == 0 {
			for i := span[0]; i < span[1]; i++ {
				flow[i] = 0
			}
		}
	}
	return flow, true
}

// The protocol behind extension headers of IPv6, and where it begins; 0 of a fragment.
func extensions(packet []byte) (byte, int) {
	next, at := packet[6], 40
	for i := 0; i < 8 && at+8 <= len(packet); i++ {
		if next == 44 {
			return packet[at], 0
		}
		if next != 0 && next != 43 && next != 60 {
			break
		}
		next, at = packet[at], at+8+int(packet[at+1])*8
	}
	return next, at
}

// State has Init say that the function keeps state of flows, and which fields of a packet make its flow. Before each batch, the
// state of these flows is read.
func (s *Setup) State(fields byte) {
	s.hasState, s.fields = true, fields
}

// Flow is the packet's as it is now, by the fields that State names. It returns whether there is one: not if it is not IP.
func (p *Packet) Flow() (Flow, bool) {
	if !p.cache.hasState {
		return Flow{}, false
	}
	return flowOf(p.Data(), p.cache.fields)
}

// Read returns what is kept of a flow, nil if that is nothing, or ErrAway. The packet leaves the chain after all updates of that
// flow before. The bytes are not to be changed.
func (p *Packet) Read(flow Flow) ([]byte, error) {
	of, err := p.cache.read(flow)
	if of == nil || err != nil {
		return nil, err
	}
	if p.update < of.update {
		p.update = of.update
	}
	return of.value, nil
}

// Update keeps a value of a flow. The packet leaves the chain when that is stored.
func (p *Packet) Update(flow Flow, value []byte) error {
	if len(value) > LongestValue {
		return ErrTooLong
	}
	p.keep(flow, append(make([]byte, 0, len(value)), value...))
	return nil
}

// Remove keeps nothing of a flow from now on. The packet leaves the chain when that is stored.
func (p *Packet) Remove(flow Flow) { p.keep(flow, nil) }

func (p *Packet) keep(flow Flow, value []byte) {
	if number := p.cache.update(flow, value); p.update < number {
		p.update = number
	}
}

// The state of a flow that was used of late.
type known struct {
	value  []byte
	update uint64
	used   bool
}

// What is known of flows, and what is still to be sent.
type cache struct {
	hasState, hasStore bool
	fields             byte
	most               int
	entries            map[Flow]*known
	// In the order in which they leave, but for those that were used since.
	order   []Flow
	last    uint64
	updates []byte
}

const (
	absent = 0xffff
	away   = 0xfffe
)

func (c *cache) insert(flow Flow, value []byte, update uint64) {
	if of := c.entries[flow]; of != nil {
		*of = known{value, update, true}
		return
	}
	for len(c.entries) >= c.most {
		oldest := c.order[0]
		c.order = c.order[1:]
		if of := c.entries[oldest]; of.used {
			of.used = false
			c.order = append(c.order, oldest)
		} else {
			delete(c.entries, oldest)
		}
	}
	c.entries[flow] = &known{value: value, update: update}
	c.order = append(c.order, flow)
}

// Reads flows from the store, in one request. It returns those that cannot be read now.
func (c *cache) fetch(flows []Flow) ([]Flow, error) {
	wrong := errors.New("the host says what is no state")
	body := make([]byte, 0, flowLength*len(flows))
	for _, flow := range flows {
		body = append(body, flow[:]...)
	}
	if err := send(readState, body); err != nil {
		return nil, err
	}
	var unread []Flow
	for done := 0; done < len(flows); {
		text, _, err := receive(values)
		if err != nil {
			return nil, err
		}
		if len(text) == 0 {
			return nil, wrong
		}
		for len(text) > 0 {
			if len(text) < 2 || done == len(flows) {
				return nil, wrong
			}
			word := int(binary.LittleEndian.Uint16(text))
			text = text[2:]
			switch {
			case word == absent:
				c.insert(flows[done], nil, 0)
			case word == away:
				unread = append(unread, flows[done])
			case word > LongestValue || word > len(text):
				return nil, wrong
			default:
				c.insert(flows[done], text[:word:word], 0)
				text = text[word:]
			}
			done++
		}
	}
	return unread, nil
}

func (c *cache) read(flow Flow) (*known, error) {
	if c.entries[flow] == nil && c.hasStore {
		// What was updated before it left the cache is written before it is read.
		c.flush()
		unread, err := c.fetch([]Flow{flow})
		if err != nil {
			panic(err)
		}
		if len(unread) > 0 {
			return nil, ErrAway
		}
	}
	of := c.entries[flow]
	if of != nil {
		of.used = true
	}
	return of, nil
}

func (c *cache) update(flow Flow, value []byte) uint64 {
	if !c.hasState {
		return 0
	}
	number := uint64(0)
	if c.hasStore {
		c.last++
		number = c.last
		if len(c.updates)+8+flowLength+2+LongestValue > longest {
			c.flush()
		}
		var head [8 + flowLength + 2]byte
		binary.LittleEndian.PutUint64(head[:], number)
		copy(head[8:], flow[:])
		length := uint16(absent)
		if value != nil {
			length = uint16(len(value))
		}
		binary.LittleEndian.PutUint16(head[8+flowLength:], length)
		c.updates = append(append(c.updates, head[:]...), value...)
	}
	c.insert(flow, value, number)
	return number
}

// Before the host sees which updates packets wait for, it has them.
func (c *cache) flush() {
	if len(c.updates) == 0 {
		return
	}
	err := send(update, c.updates)
	for err == syscall.EINTR {
		err = send(update, c.updates)
	}
	if err != nil {
		panic(err)
	}
	c.updates = c.updates[:0]
}

// Reads the state of the batch's flows that is not known, in one request. Packets of those that cannot be read are not processed.
// It returns how many are.
func (h *host) readState(count int) (int, error) {
	var missing []Flow
	asked := map[Flow]bool{}
	for i := range h.packets[:count] {
		if flow, ok := h.packets[i].Flow(); ok && h.cache.entries[flow] == nil && !asked[flow] {
			asked[flow] = true
			missing = append(missing, flow)
		}
	}
	if len(missing) == 0 {
		return count, nil
	}
	unread, err := h.cache.fetch(missing)
	if err != nil || len(unread) == 0 {
		return count, err
	}
	isAway := map[Flow]bool{}
	for _, flow := range unread {
		isAway[flow] = true
	}
	kept := 0
	for i := range h.packets[:count] {
		packet := &h.packets[i]
		if flow, ok := packet.Flow(); !ok || !isAway[flow] {
			h.packets[kept] = *packet
			kept++
			continue
		}
		verdict := uint64(noState) | drop<<48
		if h.opens {
			verdict = uint64(packet.length) | uint64(packet.head)<<32 | pass<<48
			h.passed++
		} else {
			h.dropped++
		}
		h.own.set(entry(packet.index), verdict)
		h.own.set(entry(packet.index)+1, 0)
	}
	h.batch.Packets = h.packets[:kept]
	return kept, nil
}
