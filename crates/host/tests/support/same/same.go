// A function that is also there in C, Rust and Python: see `languages.rs`.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"nf.catena/nf"
)

type same struct {
	words                                     []string
	seen, packets, bytes, grown, shrunk, full nf.Counter
	divided, empty, room                      nf.Reason
	last                                      int64
	divisor                                   uint64
	due                                       int64
}

func (s *same) Init(config string, setup *nf.Setup) error {
	s.words, s.last = strings.Split(config, " "), -1
	switch s.words[0] {
	case "name":
		setup.Counter("bad name")
		return nil
	case "many":
		for number := 0; number < 65; number++ {
			setup.Counter(fmt.Sprint("c", number))
		}
		return nil
	case "pass":
		s.seen = setup.Counter("seen")
	case "end", "hang":
		s.seen = setup.Counter("seen")
		s.due, _ = strconv.ParseInt(s.words[2], 10, 64)
	case "count":
		s.packets, s.bytes = setup.Counter("packets"), setup.Counter("bytes")
		s.divided, s.empty = setup.Reason("divided"), setup.Reason("empty")
		s.divisor, _ = strconv.ParseUint(s.words[1], 10, 64)
	case "rewrite":
		s.grown, s.shrunk, s.full = setup.Counter("grown"), setup.Counter("shrunk"), setup.Counter("full")
		s.room = setup.Reason("room")
	default:
		return fmt.Errorf("no act '%s'", config)
	}
	return nil
}

func (s *same) Process(batch *nf.Batch) {
	for i := range batch.Packets {
		packet := &batch.Packets[i]
		switch s.words[0] {
		case "count":
			s.count(batch, packet)
		case "rewrite":
			s.rewrite(batch, packet)
		default:
			s.numbered(batch, packet)
		}
	}
}

func (s *same) isDue(number int64) bool {
	if number < s.due {
		return false
	}
	file, err := os.OpenFile(s.words[1], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

func (s *same) numbered(batch *nf.Batch, packet *nf.Packet) {
	end := packet.Len() - 10
	number := int64(binary.BigEndian.Uint64(packet.Data()[end-8 : end]))
	if number <= s.last {
		panic("a packet came twice or in another order")
	}
	s.last = number
	batch.Count(s.seen, 1)
	if s.words[0] == "end" && s.isDue(number) {
		panic("as it was told to")
	}
	if s.words[0] == "hang" && s.isDue(number) {
		for {
		}
	}
}

func (s *same) count(batch *nf.Batch, packet *nf.Packet) {
	batch.Count(s.packets, 1)
	batch.Count(s.bytes, uint64(packet.Len()))
	sum := uint64(0)
	for _, of := range packet.Data() {
		sum += uint64(of)
	}
	if packet.Len() == 0 {
		packet.Drop(s.empty)
	} else if sum%s.divisor == 0 {
		packet.Drop(s.divided)
	}
}

func (s *same) rewrite(batch *nf.Batch, packet *nf.Packet) {
	length := packet.Len()
	kind := length % 4
	switch {
	case kind == 0 && packet.Push(4):
		data, kept := packet.Data(), length
		if kept > 12 {
			kept = 12
		}
		copy(data, data[4:4+kept])
		if len(data) >= 16 {
			copy(data[12:], []byte{0x81, 0, byte(packet.Port), byte(packet.Group)})
		}
		batch.Count(s.grown, 1)
	case kind == 1 && packet.Pull(3):
		batch.Count(s.shrunk, 1)
	case kind == 2 && packet.Resize(length+9):
		behind := packet.Data()[length:]
		binary.LittleEndian.PutUint64(behind, packet.Time)
		behind[8] = byte(packet.Hash)
		batch.Count(s.grown, 1)
	case kind == 3 && packet.Trim(1):
		packet.Data()[0] ^= 0x5a
		batch.Count(s.shrunk, 1)
	case kind == 2:
		packet.Drop(s.room)
	default:
		batch.Count(s.full, 1)
	}
}

func main() {
	nf.Main(&same{})
}
