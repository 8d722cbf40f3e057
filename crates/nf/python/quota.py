#!/usr/bin/env python3
"""A quota: so many packets of each flow pass. The count of a flow is kept as its state: it outlives the function, and goes with
the flow.

Configuration: how many.
"""

import catena_nf


class Quota:
    def init(self, config):
        self.most = int(config) if config.strip().isdecimal() else 0
        if not self.most:
            raise ValueError("expected a number of packets")
        self.flows = catena_nf.counter("flows")
        self.unread = catena_nf.counter("unread")
        self.above = catena_nf.reason("above")
        catena_nf.state(catena_nf.FIELD_ALL)

    def process(self, batch):
        for packet in batch:
            flow = packet.flow
            if flow is None:
                continue
            try:
                value = packet.read(flow)
            except catena_nf.Away:
                self.unread += 1
                continue
            if value is None:
                self.flows += 1
            had = int.from_bytes(value or b"", "little")
            if had == self.most:
                packet.drop(self.above)
            else:
                packet.update(flow, (had + 1).to_bytes(8, "little"))


if __name__ == "__main__":
    catena_nf.main(Quota())
