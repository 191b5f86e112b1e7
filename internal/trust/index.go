package trust

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// indexed reports whether a git index contains a path. It ignores case, because the file system may ignore it. It also returns
// true if the index cannot be parsed, because such an index may contain the path.
func indexed(index []byte, path string) bool {
	if !bytes.HasPrefix(index, []byte("DIRC\x00\x00\x00\x04")) {
		return bytes.Contains(bytes.ToLower(index), []byte(path+"\x00"))
	}
	for _, digest := range []int{20, 32} { // sizes of SHA-1 and SHA-256
		if paths, ok := paths4(index, digest); ok {
			return slices.ContainsFunc(paths, func(p string) bool { return strings.ToLower(p) == path })
		}
	}
	return true
}

// paths4 returns the paths in an index of version 4. The argument digest is the size of the index's digests in bytes. Each entry
// contains the number of bytes to remove from the end of the previous path, and the text to append.
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

// offset decodes a number in git's variable-length encoding. It returns the number and its length in bytes, which is 0 if the
// encoding is invalid.
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
