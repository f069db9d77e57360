# SPDX-License-Identifier: Apache-2.0
"""A switch between hosts that loses, delays, doubles and reorders frames, where the kernel has no netem. Runs as a program in a
network namespace of its own (network.py): whatever interfaces come there are its ports. A line of JSON on standard
input says how bad it is from now on: {"loss": 0.05, "duplicate": 0.01, "delay": 0.01, "jitter": 0.02}; shares, seconds.
The port named by the first argument is the tests' own: what passes there comes at once."""
import heapq
import json
import os
import random
import selectors
import socket
import sys
import time

ETH_P_ALL = 3
FRAME_MAX = 65536
FOUND_EVERY = 0.05  # seconds; how soon a new interface is a port
BURST = 64  # frames of one port before the others have their turn


class Relay:
    def __init__(self, own, seed):
        self.own = own
        self.chance = random.Random(seed)
        self.faults = {"loss": 0, "duplicate": 0, "delay": 0, "jitter": 0}
        self.ports = {}  # name: socket
        self.places = {}  # MAC address: port
        self.waiting = []  # (when, number, port, frame)
        self.number = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)

    def find_ports(self):
        for name in os.listdir("/sys/class/net"):
            if name == "lo" or name in self.ports:
                continue
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            port.bind((name, 0))
            port.setblocking(False)
            self.ports[name] = port
            self.selector.register(port, selectors.EVENT_READ, name)

    def send(self, name, frame):
        try:
            self.ports[name].send(frame)
        except OSError:  # its queue is full, or the host is gone: one that is lost
            pass

    def pass_on(self, source, target, frame):
        if self.own in (source, target):
            self.send(target, frame)
            return
        if self.chance.random() < self.faults["loss"]:
            return
        copies = 2 if self.chance.random() < self.faults["duplicate"] else 1
        for _ in range(copies):
            due = time.monotonic() + self.faults["delay"] + self.chance.random() * self.faults["jitter"]
            self.number += 1
            heapq.heappush(self.waiting, (due, self.number, target, frame))

    def receive(self, name):
        for _ in range(BURST):
            try:
                frame, address = self.ports[name].recvfrom(FRAME_MAX)
            except OSError:
                return
            if address[2] == socket.PACKET_OUTGOING or len(frame) < 14:
                continue
            self.places[frame[6:12]] = name
            target = self.places.get(frame[:6])
            for each in [target] if target else [port for port in self.ports if port != name]:
                self.pass_on(name, each, frame)

    def run(self):
        found = 0
        while True:
            now = time.monotonic()
            if now - found > FOUND_EVERY:
                self.find_ports()
                found = now
            while self.waiting and self.waiting[0][0] <= now:
                _, _, name, frame = heapq.heappop(self.waiting)
                self.send(name, frame)
            wait = FOUND_EVERY if not self.waiting else max(0, min(FOUND_EVERY, self.waiting[0][0] - now))
            for key, _ in self.selector.select(wait):
                if key.data is not None:
                    self.receive(key.data)
                    continue
                line = sys.stdin.readline()
                if not line:
                    return
                self.faults.update(json.loads(line))


if __name__ == "__main__":
    Relay(sys.argv[1], sys.argv[2]).run()
