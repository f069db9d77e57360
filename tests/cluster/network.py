# SPDX-License-Identifier: Apache-2.0
"""A network of hosts on this machine, whose links can be cut: each host is a network namespace with a veth pair to a
bridge, at which the tests stand too (and are never cut off). A cut is a blackhole route at the sender, so that one
direction can be cut alone; connections stay as they are and hear nothing, as those of a cut cable."""
import itertools
import os
import random
import subprocess


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


class Network:
    def __init__(self):
        while True:
            self.name = f"h{random.randrange(16 ** 5):05x}"
            self.prefix = f"10.{random.randint(100, 250)}.{random.randint(1, 250)}"
            if self.prefix + "." not in ip("-o", "addr").stdout and \
                    self.name not in ip("-o", "link").stdout:
                break
        self.hosts = {}
        self.cuts = set()
        ip("link", "add", self.name, "type", "bridge")
        ip("addr", "add", f"{self.prefix}.254/24", "dev", self.name)
        ip("link", "set", self.name, "up")

    def host(self, number):
        """The words before a command that is to run on the host. It is made with the first one."""
        name = f"{self.name}-{number}"
        if number not in self.hosts:
            self.hosts[number] = name
            outside, inside = f"{self.name}v{number}", f"{self.name}w{number}"
            ip("netns", "add", name)
            ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            ip("link", "set", inside, "netns", name)
            ip("link", "set", outside, "master", self.name, "up")
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
        self.hosts.clear()
