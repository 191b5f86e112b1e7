package trust

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// indexed reports whether a git index contains a path, ignoring case, since file systems may ignore it. An index that cannot be
// read may contain every path.
func indexed(index []byte, path string) bool {
	if !bytes.HasPrefix(index, []byte("DIRC\x00\x00\x00\x04")) {
		return bytes.Contains(bytes.ToLower(index), []byte(path+"\x00"))
	}
	for _, digest := range []int{20, 32} { // SHA-1 and SHA-256
		if paths, ok := paths4(index, digest); ok {
			return slices.ContainsFunc(paths, func(p string) bool { return strings.ToLower(p) == path })
		}
	}
	return true
}

// paths4 returns the paths in an index of version 4, whose digests have a number of bytes. Each entry has the length that it cuts
// from the end of the previous path, and the text that follows there.
func paths4(index []byte, digest int) (paths []string, ok bool) {
	const header, stat, extended = 12, 40, 0x40
	if len(index) < header+digest {
		return nil, false
	}
	n, rest, last := binary.BigEndian.Uint32(index[8:]), index[header:len(index)-digest], ""
	for range n {
		size := stat + digest + 2
		if len(rest) > size && rest[size-2]&extended != 0 {
			size += 2
		}
		if len(rest) <= size {
			return nil, false
		}
		cut, used := offset(rest[size:])
		end := bytes.IndexByte(rest[size+used:], 0)
		if used == 0 || cut > len(last) || end < 0 {
			return nil, false
		}
		last = last[:len(last)-cut] + string(rest[size+used:size+used+end])
		paths, rest = append(paths, last), rest[size+used+end+1:]
	}
	for len(rest) >= 8 { // extensions
		size := uint64(binary.BigEndian.Uint32(rest[4:])) + 8
		if size > uint64(len(rest)) {
			return nil, false
		}
		rest = rest[size:]
	}
	return paths, len(rest) == 0
}

// offset decodes a number in git's encoding, and returns its length in bytes, which is 0 if it is invalid.
func offset(data []byte) (n, used int) {
	for i, b := range data[:min(len(data), 4)] {
		n = n<<7 | int(b&0x7f)
		if b < 0x80 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}
