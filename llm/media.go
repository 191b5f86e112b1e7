package llm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// MaxMedia is the maximum size of Media.Data in bytes.
const MaxMedia = 20_000_000

// Media is an image, a sound, a video or a document, given by its bytes or by a URL. [ReadMedia] reads a file. If the protocol does
// not support the media, the request is rejected with an error that names their type; see [CheckMedia].
type Media struct {
	// Type is the media type, such as "image/png". For a picture at a URL, Type may be AnyImage.
	Type string `json:"type"`
	Data []byte `json:"data,omitempty"` // at most MaxMedia bytes; base64 in JSON
	URL  string `json:"url,omitempty"`
	Name string `json:"name,omitempty"` // file name of a document
}

// AnyImage is the Type of a picture at a URL whose format is unknown.
const AnyImage = "image/*"

// ReadMedia reads media from a file. The type is determined by the first bytes of the file or, if they match no known format, by
// its name.
func ReadMedia(file string) (*Media, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxMedia+1))
	if err != nil {
		return nil, err
	}
	m, err := NewMedia(filepath.Base(file), data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// MediaURL returns media for a URL. It decodes a data URL. For any other URL, the media contain the URL itself, and their type
// follows from its extension or, if that is not known, is kind.
func MediaURL(url, kind, name string) (*Media, error) {
	address, _, _ := strings.Cut(url, "?")
	if known := mime.TypeByExtension(path.Ext(address)); kind != AnyImage && known != "" || strings.HasPrefix(known, "image/") {
		kind, _, _ = strings.Cut(known, ";")
	}
	m := &Media{Type: kind, URL: url, Name: name}
	if data, ok := strings.CutPrefix(url, "data:"); ok {
		head, text, _ := strings.Cut(data, ",")
		head, isBase64 := strings.CutSuffix(head, ";base64")
		media, _, err := mime.ParseMediaType(head)
		if err != nil || !isBase64 {
			return nil, fmt.Errorf("a data URL starts with %.100q: want data:TYPE;base64,", head)
		}
		bytes, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("the data URL of an image or file is not base64: %w", err)
		}
		m = &Media{Type: media, Data: bytes, Name: name}
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("an image or file: %w", err)
	}
	return m, nil
}

// NewMedia returns media with the given file name and content. The type is determined by the first bytes of data or, if they match
// no known format, by the name.
func NewMedia(name string, data []byte) (*Media, error) {
	m := &Media{Type: typeOf(name, data), Data: data, Name: name}
	if m.Type == "" {
		return nil, errors.New("neither content nor name shows the media type: make a Media with its Type")
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	return m, nil
}

// signatures are the first bytes of formats, where "?" stands for any byte. Source: WHATWG, MIME Sniffing Standard, sections 6
// and 7.
var signatures = []struct{ head, mediaType string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF8", "image/gif"},
	{"RIFF????WEBP", "image/webp"},
	{"????ftyphei", "image/heic"},
	{"%PDF-", "application/pdf"},
	{"RIFF????WAVE", "audio/wav"},
	{"ID3", "audio/mpeg"},
	{"fLaC", "audio/flac"},
	{"OggS", "audio/ogg"},
	{"????ftypM4A", "audio/mp4"},
	{"????ftyp", "video/mp4"},
	{"\x1a\x45\xdf\xa3", "video/webm"},
}

// extensions maps file name extensions to media types, for formats that cannot be recognized by their first bytes.
var extensions = map[string]string{
	".mp3": "audio/mpeg", ".aac": "audio/aac", ".svg": "image/svg+xml",
	".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".html": "text/html", ".json": "application/json",
}

func typeOf(name string, data []byte) string {
	for _, s := range signatures {
		if begins(data, s.head) {
			return s.mediaType
		}
	}
	return extensions[strings.ToLower(filepath.Ext(name))]
}

// Kind returns the media type that the first bytes of Data indicate, or "" if they match no known format.
func (m *Media) Kind() string { return typeOf("", m.Data) }

func begins(data []byte, head string) bool {
	for i := range head {
		if i >= len(data) || head[i] != '?' && head[i] != data[i] {
			return false
		}
	}
	return true
}

// Check returns an error if the media have no valid type, have neither Data nor URL, have both, or exceed MaxMedia.
func (m *Media) Check() error {
	main, sub, _ := strings.Cut(m.Type, "/")
	switch {
	case m.Type == AnyImage && m.URL != "" && len(m.Data) == 0:
	case main == "" || sub == "" || strings.ContainsAny(m.Type, " ,*\"\n"):
		return fmt.Errorf("media of type %q: set Type to a media type, such as image/png", m.Type)
	case len(m.Data) == 0 && m.URL == "":
		return fmt.Errorf("media of type %q is empty: set Data or URL", m.Type)
	case len(m.Data) > 0 && m.URL != "":
		return fmt.Errorf("media of type %q has both Data and URL: set one", m.Type)
	case len(m.Data) > MaxMedia:
		return fmt.Errorf("media of type %q has more than %s: make it smaller, or pass its URL", m.Type, bytesText(MaxMedia))
	}
	return nil
}

// String returns a short description of the media, such as "a.png, image/png, 34 KB".
func (m *Media) String() string {
	words := []string{m.Type, bytesText(len(m.Data))}
	if m.Name != "" {
		words = append([]string{m.Name}, words...)
	}
	if m.URL != "" {
		words[len(words)-1], _, _ = strings.Cut(m.URL, "?") // the query may contain a signature
	}
	return strings.Join(words, ", ")
}

// stub returns the text that is shown in place of the media, such as "[a.png, image/png, 34 KB]".
func (m *Media) stub() string { return "[" + m.String() + "]" }

// bytesText formats a number of bytes with a unit, such as "34 KB".
func bytesText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// tokens estimates how many input tokens the media take. Providers count the pixels of a picture, the seconds of a sound and the
// pages of a document, but these are not known here.
func (m *Media) tokens() int {
	kind, _, _ := strings.Cut(m.Type, "/")
	switch n := len(m.Data); {
	case kind == "text":
		return n / bytesPerToken
	case m.URL != "":
		return mediaTokens
	case kind == "image":
		return min(n/bytesPerToken, mediaTokens)
	case kind == "audio", kind == "video":
		return n / 256 // assumes 8 kB and 32 tokens per second
	default:
		return n / 32 // assumes 64 kB and 2,000 tokens per page
	}
}

// CheckMedia returns an error if m is known not to accept the media in messages of the given role, or if the media are invalid.
func CheckMedia(m Model, role Role, media *Media) error {
	if c, ok := m.(interface {
		CheckMedia(role Role, media *Media) error
	}); ok {
		return c.CheckMedia(role, media)
	}
	return media.Check()
}
