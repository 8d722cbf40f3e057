package nf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Messages.
const (
	hello = 0x4e460001 + iota
	attach
	attached
	begin
	ready
	refused
	readState
	values
	update
)

// Flags of attach.
const (
	writes = 1 << iota
	copies
	store
	open
)

// States in which functions wait.
const (
	stateYield = 1
	stateStop  = 3
)

// Words of a page.
const (
	wordRound     = 0
	wordCount     = 1
	wordState     = 2
	wordReceived  = 8 // and six more
	wordOutOfTurn = 12
	wordCounters  = 64
	wordEntries   = 512
)

const (
	pass      = 1
	drop      = 2
	malformed = 0xffff
	noState   = 0xfffe
	longest   = 1 << 16
	files     = 8

	prSetPdeathsig = 1
	getSeals       = 1034
	sealShrink     = 2
)

// A page or a region, and its words.
type memory []byte

func (m memory) word(at int) *uint64 {
	return (*uint64)(unsafe.Pointer(&m[8*at : 8*at+8][0]))
}

// Go's atomic operations are in the same order for all: also acquire and release.
func (m memory) load(at int) uint64         { return atomic.LoadUint64(m.word(at)) }
func (m memory) store(at int, value uint64) { atomic.StoreUint64(m.word(at), value) }

// What is before the release of a round need not be ordered by itself.
func (m memory) set(at int, value uint64) { *m.word(at) = value }

func entry(index int) int { return wordEntries + 4*index }

type host struct {
	function               Function
	host, before, own      memory
	region, from           memory
	wake, wakeNext         int
	buffers, size, maximum int
	writes                 bool
	counters               int
	round                  uint64
	received, passed       uint64
	dropped, malformed     uint64
	outOfTurn, busy        uint64
	batches                uint64
	opens                  bool
	packets                []Packet
	batch                  Batch
	cache                  cache
}

func send(kind uint32, body []byte) error {
	message := make([]byte, 8, 8+len(body))
	binary.LittleEndian.PutUint32(message, kind)
	binary.LittleEndian.PutUint32(message[4:], Version)
	return syscall.Sendmsg(0, append(message, body...), nil, nil, syscall.MSG_NOSIGNAL)
}

func receive(due uint32) ([]byte, []int, error) {
	body, control := make([]byte, 8+longest), make([]byte, syscall.CmsgSpace(4*files))
	length, more, flags, err := 0, 0, 0, error(syscall.EINTR)
	for err == syscall.EINTR {
		length, more, flags, _, err = syscall.Recvmsg(0, body, control, syscall.MSG_CMSG_CLOEXEC)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case length == 0:
		return nil, nil, errors.New("the host has ended")
	case length < 8 || flags&(syscall.MSG_TRUNC|syscall.MSG_CTRUNC) != 0:
		return nil, nil, errors.New("a message that is none of the ABI")
	}
	var all []int
	messages, err := syscall.ParseSocketControlMessage(control[:more])
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		if rights, err := syscall.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, rights...)
		}
	}
	kind, version := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])
	if version != Version {
		return nil, nil, fmt.Errorf("the host has version %d of the ABI, and this NF %d", version, Version)
	}
	if kind != due {
		return nil, nil, errors.New("another message than was due")
	}
	return body[8:length], all, nil
}

// Descriptors in the order in which they came.
type descriptors []int

func (d *descriptors) next() (int, error) {
	if len(*d) == 0 {
		return 0, errors.New("too few descriptors")
	}
	file := (*d)[0]
	*d = (*d)[1:]
	return file, nil
}

func (d *descriptors) mapped(length int, writable bool) (memory, error) {
	file, err := d.next()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(file)
	seals, _, failed := syscall.Syscall(syscall.SYS_FCNTL, uintptr(file), getSeals, 0)
	var status syscall.Stat_t
	if failed != 0 || seals&sealShrink == 0 || syscall.Fstat(file, &status) != nil || status.Size < int64(length) {
		return nil, errors.New("memory that is shorter than said, or not sealed")
	}
	access := syscall.PROT_READ
	if writable {
		access |= syscall.PROT_WRITE
	}
	all, err := syscall.Mmap(file, 0, length, access, syscall.MAP_SHARED|syscall.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("memory that cannot be mapped: %w", err)
	}
	return all, nil
}

func run(function Function) error {
	if _, err := syscall.GetsockoptInt(0, syscall.SOL_SOCKET, syscall.SO_TYPE); err != nil {
		return errors.New("this is a network function, which its host starts: `catena nf run PROGRAM --pcap FILE`")
	}
	// It ends with its host.
	syscall.RawSyscall6(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	if err := send(hello, nil); err != nil {
		return err
	}
	h := &host{function: function}
	if err := h.attach(); err != nil {
		text := err.Error()
		if len(text) > longest {
			text = text[:longest]
		}
		_ = send(refused, []byte(text))
		return err
	}
	for h.wait() {
		count := h.take()
		if h.cache.hasStore {
			var err error
			if count, err = h.readState(count); err != nil {
				return err
			}
		}
		begin := time.Now()
		function.Process(&h.batch)
		h.busy += uint64(time.Since(begin))
		h.cache.flush()
		h.give(count)
	}
	return nil
}

func (h *host) attach() error {
	body, all, err := receive(attach)
	if err != nil {
		return err
	}
	if len(body) < 20 {
		return errors.New("too few numbers")
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(body[4*at:])) }
	flags := number(0)
	h.buffers, h.size, h.maximum = number(1), number(2), number(3)
	if h.buffers < 1 || h.buffers > 1<<20 || h.size < 256 || h.size > 1<<16 || h.size%64 != 0 || h.maximum < 1 || h.maximum > 1024 {
		return errors.New("a layout that the ABI has not")
	}
	if h.cache.most = number(4); h.cache.most < 1 {
		return errors.New("a cache of no flows")
	}
	h.opens, h.cache.hasStore = flags&open != 0, flags&store != 0
	page := (8*wordEntries + 32*h.maximum + 4095) / 4096 * 4096
	region := h.buffers * h.size
	h.writes = flags&writes != 0
	owns := flags&(writes|copies) != 0
	given := descriptors(all)
	if h.own, err = given.mapped(page, true); err != nil {
		return err
	}
	if h.wake, err = given.next(); err != nil {
		return err
	}
	if h.wakeNext, err = given.next(); err != nil {
		return err
	}
	if owns {
		if h.region, err = given.mapped(region, true); err != nil {
			return err
		}
	}
	if err = send(attached, nil); err != nil {
		return err
	}
	config, all, err := receive(begin)
	if err != nil {
		return err
	}
	given = all
	if h.host, err = given.mapped(page, false); err != nil {
		return err
	}
	if h.before, err = given.mapped(page, false); err != nil {
		return err
	}
	if !owns || flags&copies != 0 {
		read, err := given.mapped(region, false)
		if err != nil {
			return err
		}
		if owns {
			h.from = read
		} else {
			h.region = read
		}
	}
	_ = syscall.Mlock(h.region)
	return h.begin(string(config))
}

func (h *host) begin(config string) error {
	var setup Setup
	if err := h.function.Init(strings.ToValidUTF8(config, "\ufffd"), &setup); err != nil {
		return err
	}
	if setup.wrong != nil {
		return setup.wrong
	}
	h.cache.hasState, h.cache.fields = setup.hasState, setup.fields
	h.cache.hasStore = h.cache.hasStore && setup.hasState
	h.cache.entries = map[Flow]*known{}
	h.packets = make([]Packet, h.maximum)
	h.counters = len(setup.counters)
	h.round = h.own.load(wordRound)
	var names strings.Builder
	for _, name := range setup.counters {
		names.WriteString("counter " + name + "\n")
	}
	for _, name := range setup.reasons {
		names.WriteString("reason " + name + "\n")
	}
	if setup.hasState {
		names.WriteString("state\n")
	}
	return send(ready, []byte(names.String()))
}

// Waits for the turn. It returns whether there is one.
func (h *host) wait() bool {
	var times [8]byte
	woke := false
	for {
		round := h.host.load(wordRound)
		if round != h.round && h.before.load(wordRound) == round {
			h.round = round
			return h.host.load(wordState) < stateStop
		}
		if woke {
			h.outOfTurn++
			h.own.store(wordOutOfTurn, h.outOfTurn)
		}
		state := h.host.load(wordState)
		if state >= stateStop {
			return false
		}
		if state == stateYield {
			// What Go's scheduler does about a call is not worth the time of this one.
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
			woke = false
			continue
		}
		_, err := syscall.Read(h.wake, times[:])
		woke = err == nil
	}
}

// Takes the packets that the one before passed on. It returns how many positions the round has.
func (h *host) take() int {
	count := h.maximum
	if came := h.host.load(wordCount); came < uint64(count) {
		count = int(came)
	}
	taken := 0
	for index := 0; index < count; index++ {
		verdict := h.before.load(entry(index))
		if verdict>>48 != pass {
			h.own.set(entry(index), 0)
			continue
		}
		h.received++
		place, more := h.host.load(entry(index)+1), h.host.load(entry(index)+3)
		head, length, buffer := int(verdict>>32&0xffff), int(uint32(verdict)), int(uint32(place))
		if head+length > h.size || buffer >= h.buffers {
			h.malformed++
			h.own.set(entry(index), malformed|drop<<48)
			continue
		}
		start := buffer * h.size
		end := start + h.size
		h.packets[taken] = Packet{
			Time: h.host.load(entry(index) + 2), Hash: uint32(place >> 32), Port: uint16(more), Group: uint16(more >> 16),
			writable: h.writes, index: index, head: head, length: length, buffer: h.region[start:end:end],
			cache: &h.cache,
		}
		if h.from != nil {
			copy(h.region[start+head:start+head+length], h.from[start+head:])
		}
		taken++
	}
	h.batch.Packets = h.packets[:taken]
	return taken
}

// Says what became of them, and hands the turn on.
func (h *host) give(count int) {
	for i := range h.packets[:count] {
		packet := &h.packets[i]
		verdict := uint64(packet.length) | uint64(packet.head)<<32 | pass<<48
		if packet.dropped {
			verdict = uint64(packet.reason) | drop<<48
			h.dropped++
		} else {
			h.passed++
		}
		h.own.set(entry(packet.index), verdict)
		if h.cache.hasStore {
			h.own.set(entry(packet.index)+1, packet.update)
		}
	}
	h.batches++
	for at, value := range [...]uint64{h.received, h.passed, h.dropped, h.malformed, h.outOfTurn, h.busy, h.batches} {
		h.own.set(wordReceived+at, value)
	}
	for at, value := range h.batch.counters[:h.counters] {
		h.own.set(wordCounters+at, value)
	}
	h.own.store(wordRound, h.round)
	if h.host.load(wordState) != stateYield {
		one := [8]byte{1}
		_, _ = syscall.Write(h.wakeNext, one[:])
	}
}
