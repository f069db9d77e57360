# SPDX-License-Identifier: Apache-2.0
"""A network of hosts on this machine, whose links can be cut: each host is a network namespace with a veth pair to a
bridge, at which the tests stand too (and are never cut off). A cut is a blackhole route at the sender, so that one
direction can be cut alone; connections stay as they are and hear nothing, as those of a cut cable."""
import ctypes
import fcntl
import itertools
import json
import os
import random
import socket
import struct
import subprocess
import sys

SIOCETHTOOL = 0x8946
ETHTOOL_STXCSUM, ETHTOOL_SGSO = 0x17, 0x24
HERE = os.path.dirname(os.path.abspath(__file__))


def ip(*words, check=True):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=check)


def why_not():
    """None when such networks can be made here; why not, otherwise."""
    name = f"hw{os.getpid()}"
    try:
        ip("netns", "add", name)
    except FileNotFoundError:
        return "there is no ip (iproute2)"
    except subprocess.CalledProcessError as error:
        return f"no network namespaces: {error.stderr.strip()}"
    try:
        ip("-n", name, "link", "add", "bridge0", "type", "bridge")
        ip("-n", name, "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
        ip("-n", name, "route", "add", "blackhole", "10.0.0.1/32")
    except subprocess.CalledProcessError as error:
        return f"no bridges, veth pairs or blackhole routes: {error.stderr.strip()}"
    finally:
        ip("netns", "del", name, check=False)
    return None


def send_whole_frames(interface):
    """No checksum and no segment is left for hardware that is not there: a relay passes on what it gets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (ETHTOOL_STXCSUM, ETHTOOL_SGSO):
            value = bytearray(struct.pack("II", command, 0))
            buffer = (ctypes.c_char * len(value)).from_buffer(value)
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP", interface.encode(), ctypes.addressof(buffer)))


class Network:
    """is_bad: hosts are joined by a relay, which worsen() tells what to do to their frames; by a bridge otherwise."""

    def __init__(self, is_bad=False):
        while True:
            self.name = f"h{random.randrange(16 ** 5):05x}"
            self.prefix = f"10.{random.randint(100, 250)}.{random.randint(1, 250)}"
            if self.prefix + "." not in ip("-o", "addr").stdout and \
                    self.name not in ip("-o", "link").stdout:
                break
        self.hosts = {}
        self.cuts = set()
        self.relay = None
        self.space = None
        if is_bad:
            self.start_relay()
        else:
            ip("link", "add", self.name, "type", "bridge")
        ip("addr", "add", f"{self.prefix}.254/24", "dev", self.name)
        ip("link", "set", self.name, "up")

    def start_relay(self):
        own = self.name + "r"
        self.space = self.name + "-relay"
        ip("netns", "add", self.space)
        ip("link", "add", self.name, "type", "veth", "peer", "name", own)
        send_whole_frames(self.name)
        ip("link", "set", own, "netns", self.space)
        ip("-n", self.space, "link", "set", own, "up")
        self.relay = subprocess.Popen(
            ["ip", "netns", "exec", self.space, sys.executable, os.path.join(HERE, "relay.py"), own, self.name],
            stdin=subprocess.PIPE, text=True)

    def worsen(self, **faults):
        """What the relay does to frames between hosts: loss, duplicate (shares), delay, jitter (seconds)."""
        self.relay.stdin.write(json.dumps(faults) + "\n")
        self.relay.stdin.flush()

    def host(self, number):
        """The words before a command that is to run on the host. It is made with the first one."""
        name = f"{self.name}-{number}"
        if number not in self.hosts:
            self.hosts[number] = name
            outside, inside = f"{self.name}v{number}", f"{self.name}w{number}"
            ip("netns", "add", name)
            ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            if self.relay:
                send_whole_frames(inside)
                ip("link", "set", outside, "netns", self.space)
                ip("-n", self.space, "link", "set", outside, "up")
            else:
                ip("link", "set", outside, "master", self.name, "up")
            ip("link", "set", inside, "netns", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", f"{self.prefix}.{number}/24", "dev", inside)
            ip("-n", name, "link", "set", inside, "up")
        return ["ip", "netns", "exec", name]

    def cut(self, sender, receiver):
        """Nothing that one node sends reaches the other; the other way stays."""
        if (sender.number, receiver.number) not in self.cuts:
            ip("-n", self.hosts[sender.number], "route", "add", "blackhole", receiver.address + "/32")
            self.cuts.add((sender.number, receiver.number))

    def cut_both(self, one, other):
        self.cut(one, other)
        self.cut(other, one)

    def partition(self, *groups):
        """Nodes of different groups hear nothing of each other."""
        for one, other in itertools.permutations(groups, 2):
            for sender in one:
                for receiver in other:
                    self.cut(sender, receiver)

    def heal(self):
        for sender, receiver in self.cuts:
            ip("-n", self.hosts[sender], "route", "del", "blackhole", f"{self.prefix}.{receiver}/32")
        self.cuts.clear()

    def end(self):
        for name in self.hosts.values():
            ip("netns", "del", name, check=False)  # and its end of the pair, and so the other one
        ip("link", "del", self.name, check=False)
        if self.relay:
            self.relay.stdin.close()
            self.relay.wait(10)
            ip("netns", "del", self.space, check=False)
        self.hosts.clear()
