// Package nf runs network functions for Catena: the NF runtime API, version 2.
//
// A network function has two methods, and Main runs it:
//
//	type short struct{ reason nf.Reason }
//
//	func (s *short) Init(config string, setup *nf.Setup) error {
//		s.reason = setup.Reason("short")
//		return nil
//	}
//
//	func (s *short) Process(batch *nf.Batch) {
//		for i := range batch.Packets {
//			if packet := &batch.Packets[i]; packet.Len() < 34 {
//				packet.Drop(s.reason)
//			}
//		}
//	}
//
//	func main() { nf.Main(&short{}) }
//
// Process is called in one locked thread of the kernel, and GOMAXPROCS is 1. Go starts more threads by itself: the manifest
// gives the function `threads: 16`.
//
// SPDX-License-Identifier: Apache-2.0
package nf

import (
	"fmt"
	"os"
	"runtime"
)

// Version of the ABI.
const Version = 2

// Counters and reasons at most.
const (
	MostCounters = 64
	MostReasons  = 32
)

// Function is a network function.
type Function interface {
	// Init gets the configuration, and names counters and reasons. An error says what is wrong with the configuration.
	Init(config string, setup *Setup) error
	// Process processes a batch. Packets of which it says nothing pass.
	Process(batch *Batch)
}

// Counter reads like an element's.
type Counter int

// Reason to drop packets.
type Reason uint16

// Setup takes what a function says of itself when it is made.
type Setup struct {
	counters, reasons []string
	hasState          bool
	fields            byte
	wrong             error
}

// Counter names a counter.
func (s *Setup) Counter(name string) Counter {
	return Counter(s.add(&s.counters, name, MostCounters))
}

// Reason names a reason to drop packets.
func (s *Setup) Reason(name string) Reason {
	return Reason(s.add(&s.reasons, name, MostReasons))
}

func (s *Setup) add(all *[]string, name string, most int) int {
	for number, other := range *all {
		if other == name {
			return number
		}
	}
	if !isName(name) || len(*all) == most {
		if s.wrong == nil {
			s.wrong = fmt.Errorf("'%.40s' is no name, or one too many", name)
		}
		return 0
	}
	*all = append(*all, name)
	return len(*all) - 1
}

func isName(name string) bool {
	for _, of := range []byte(name) {
		switch {
		case 'a' <= of && of <= 'z', 'A' <= of && of <= 'Z', '0' <= of && of <= '9', of == '_', of == '-':
		default:
			return false
		}
	}
	return 1 <= len(name) && len(name) <= 40
}

// Batch has the packets that the function before passed on, in their order.
type Batch struct {
	Packets  []Packet
	counters [MostCounters]uint64
}

// Count adds to a counter.
func (b *Batch) Count(counter Counter, more uint64) {
	if 0 <= counter && int(counter) < MostCounters {
		b.counters[counter] += more
	}
}

// Packet of a batch. It and its bytes are only used until Process returns.
type Packet struct {
	// Time is when it came: nanoseconds since 1970.
	Time uint64
	// Hash of its flow; 0 if it is not known.
	Hash uint32
	// Port at which it came.
	Port uint16
	// Group of its flow; 0 if it has none.
	Group uint16

	dropped  bool
	writable bool
	reason   Reason
	index    int
	head     int
	length   int
	buffer   []byte
	update   uint64
	cache    *cache
}

// Data is its bytes from the Ethernet header on. Nothing may be written to them if Writable is false.
func (p *Packet) Data() []byte {
	end := p.head + p.length
	return p.buffer[p.head:end:end]
}

// Len is how many bytes it has.
func (p *Packet) Len() int { return p.length }

// Writable is whether its bytes and its length may be changed: not if the manifest has `writes: none`.
func (p *Packet) Writable() bool { return p.writable }

// Headroom is how many bytes are free in front of it.
func (p *Packet) Headroom() int { return p.head }

// Tailroom is how many bytes are free behind it.
func (p *Packet) Tailroom() int { return len(p.buffer) - p.head - p.length }

// Push adds bytes in front, whose content is what was there. It returns whether there was room.
func (p *Packet) Push(count int) bool {
	return count >= 0 && count <= p.head && p.reframe(p.head-count, p.length+count)
}

// Pull takes bytes away in front. It returns whether there were so many.
func (p *Packet) Pull(count int) bool {
	return count >= 0 && count <= p.length && p.reframe(p.head+count, p.length-count)
}

// Resize makes it so long, by bytes more or fewer at its end. It returns whether there was room.
func (p *Packet) Resize(length int) bool {
	return length >= 0 && length <= len(p.buffer) && p.reframe(p.head, length)
}

// Trim takes bytes away at its end. It returns whether there were so many.
func (p *Packet) Trim(count int) bool {
	return count >= 0 && count <= p.length && p.reframe(p.head, p.length-count)
}

func (p *Packet) reframe(head, length int) bool {
	if !p.writable || head > 0xffff || head+length > len(p.buffer) {
		return false
	}
	p.head, p.length = head, length
	return true
}

// Pass has it go on. That is so for packets of which nothing is said.
func (p *Packet) Pass() { p.dropped = false }

// Drop has it dropped.
func (p *Packet) Drop(reason Reason) { p.dropped, p.reason = true, reason }

// Dropped is whether it is dropped as it stands.
func (p *Packet) Dropped() bool { return p.dropped }

// Main runs a network function until its host ends: the whole of a program.
func Main(function Function) {
	// One thread processes packets, and the rest of the runtime shares its turn.
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	if err := run(function); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
