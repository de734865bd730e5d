#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCEv2 frames made without the engine's code, for test_wire.c:

    ./wire_vectors.py > wire_vectors.h
"""

import socket
import struct
import zlib


def icrc(ip, v6, rest):
    h = bytearray(ip + rest)
    if v6:
        h[0] |= 0x0f
        h[1:4] = b"\xff" * 3
        h[7] = 0xff
        n = 40
    else:
        h[1] = h[8] = 0xff
        h[10:12] = b"\xff\xff"
        n = 20
    h[n + 6:n + 8] = b"\xff\xff"
    h[n + 12] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(h)))


def checksum(h):
    s = sum(struct.unpack("!10H", h))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return struct.pack("!H", ~s & 0xffff)


def ip_header(v6, length, tclass, ttl, label):
    if v6:
        src = socket.inet_pton(socket.AF_INET6, "fe80::5054:ff:fe12:3456")
        dst = socket.inet_pton(socket.AF_INET6, "fd00::2")
        return struct.pack("!IHBB", 6 << 28 | tclass << 20 | label, length, 17,
                           ttl) + src + dst
    ip = struct.pack("!BBHHHBBH", 0x45, tclass, 20 + length, 0, 0x4000, ttl, 17,
                     0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return ip[:10] + checksum(ip) + ip[12:]


def frame(v6, vlan, op, se, ackreq, qp, psn, ext, payload, sport, tclass, ttl,
          label=0):
    pad = -len(payload) & 3
    body = struct.pack("!BBHII", op, se << 7 | 0x40 | pad << 4, 0xffff, qp,
                       ackreq << 31 | psn) + ext + payload + bytes(pad)
    udp = struct.pack("!HHHH", sport, 4791, 8 + len(body) + 4, 0)
    ip = ip_header(v6, len(udp) + len(body) + 4, tclass, ttl, label)
    eth = bytes.fromhex("525400123457") + bytes.fromhex("525400123456")
    if vlan is not None:
        eth += struct.pack("!HH", 0x8100, vlan)
    eth += b"\x86\xdd" if v6 else b"\x08\x00"
    return eth + ip + udp + body + icrc(ip, v6, udp + body)


def show(name, f):
    print("\nstatic const uint8_t %s[] = {" % name)
    for i in range(0, len(f), 12):
        print("    " + " ".join("0x%02x," % b for b in f[i:i + 12]))
    print("};")


print("/* SPDX-License-Identifier: GPL-2.0-or-later */")
print("/* Made by wire_vectors.py; do not edit. */")
show("send_only_v4", frame(
    False, None, 0x04, 1, 1, 0x123456, 0xfffffe, b"", b"hello", 0xd431, 2, 64))
show("write_imm_v6_vlan", frame(
    True, 3 << 13 | 100, 0x0b, 0, 1, 0xabc, 0x10,
    struct.pack("!QII", 0x1122334455667788, 0xcafe0001, 7) + b"\1\2\3\4",
    b"payload", 0xc001, 0xb8, 255, 0x12345))
show("ack_v4", frame(
    False, None, 0x11, 0, 0, 0x11, 0x800000,
    struct.pack("!I", 0x1f << 24 | 0xabcdef), b"", 0xc000, 0, 1))
show("fetch_add_v4", frame(
    False, None, 0x14, 0, 1, 0x11, 5,
    struct.pack("!QIQQ", 0x1000, 0x42, 3, 0), b"", 0xffff, 0, 64))
show("masked_cmp_swap_v4", frame(
    False, None, 0xd3, 0, 1, 0x11, 5,
    struct.pack("!QIQQQQ", 0x1122334455667788, 0xcafe0001, 0x0102030405060708,
                0x1112131415161718, 0x2122232425262728, 0x3132333435363738),
    b"", 0xffff, 0, 64))
show("atomic_ack_v6", frame(
    True, None, 0x12, 0, 0, 0x11, 5,
    struct.pack("!IQ", 0x1f << 24 | 9, 0x0102030405060708), b"", 0xffff, 0,
    64))
show("xrc_write_imm_v4", frame(
    False, None, 0xab, 1, 1, 0x11, 6,
    struct.pack("!IQII", 0xabcdef, 0x2000, 0x43, 5) + b"\5\6\7\10", b"12345",
    0xffff, 0, 64))
show("xrc_cmp_swap_v6", frame(
    True, None, 0xb3, 0, 1, 0x11, 7,
    struct.pack("!IQIQQ", 0x000001, 0x3000, 0x44, 1, 2), b"", 0xffff, 0, 64))
show("flush_v6", frame(
    True, None, 0x1c, 0, 1, 0x11, 5,
    struct.pack("!IQII", 1 << 4 | 3, 0x1122334455667788, 0xcafe0001, 0x1234),
    b"", 0xffff, 0, 64))
show("atomic_write_v4", frame(
    False, None, 0x1d, 0, 1, 0x11, 5,
    struct.pack("!QII", 0x1122334455667788, 0xcafe0001, 8), b"\1\2\3\4\5\6\7\x08",
    0xffff, 0, 64))
