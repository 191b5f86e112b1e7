package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // to read a picture's size from its header
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// MediaRule returns the reason why a protocol does not support media in messages of a role, or nil if it does. It is never called
// for the system role.
type MediaRule func(role llm.Role, m *llm.Media) error

// CheckMedia returns an error for media that the provider does not accept in messages of a role.
func (m *Model) CheckMedia(role llm.Role, media *llm.Media) error {
	if err := media.Check(); err != nil {
		return err
	}
	if role == llm.RoleUser || role == llm.RoleTool {
		media = sniffed(media)
	}
	if role == llm.RoleSystem {
		return Misplaced(role, media)
	}
	if err := m.setup.Media(role, media); err != nil || role == llm.RoleAssistant {
		return err
	}
	return checkPicture(rules.Pictures[m.setup.Protocol], media)
}

// checkPicture returns an error for a picture whose bytes the protocol does not accept.
func checkPicture(rule rules.Picture, media *llm.Media) error {
	if !strings.HasPrefix(media.Type, "image/") || len(media.Data) == 0 {
		return nil
	}
	if size := base64.StdEncoding.EncodedLen(len(media.Data)); rule.MaxBytes > 0 && size > rule.MaxBytes {
		return fmt.Errorf("media of type %q has %.1f MB: the protocol takes pictures up to %.1f MB, make it smaller", media.Type, float64(len(media.Data))/1e6, float64(rule.MaxBytes)/4*3/1e6)
	}
	if kind := media.Kind(); kind != media.Type {
		return fmt.Errorf("media of type %q: its bytes are %s: the protocol takes %s", media.Type, cmp.Or(kind, "no picture"), strings.Join(rule.Types, ", "))
	}
	head, _, err := image.DecodeConfig(bytes.NewReader(media.Data))
	if err == nil && rule.MaxSide > 0 && max(head.Width, head.Height) > rule.MaxSide {
		return fmt.Errorf("media of type %q has %d by %d pixels: the protocol takes pictures up to %d pixels wide and high", media.Type, head.Width, head.Height, rule.MaxSide)
	}
	return nil
}

// Misplaced returns the error for media in a message whose role does not allow media.
func Misplaced(role llm.Role, m *llm.Media) error {
	return fmt.Errorf("media of type %q in a message of the role %s: put it into a message of the user", m.Type, role)
}

// checkMessages returns an error for the first message that the protocol cannot express.
func (m *Model) checkMessages(messages []llm.Message) error {
	for i := range messages {
		switch msg := &messages[i]; msg.Role {
		case llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
			for _, p := range msg.Content {
				if p.Media == nil {
					continue
				}
				if err := m.CheckMedia(msg.Role, p.Media); err != nil {
					return fmt.Errorf("message %d: %w", i, err)
				}
			}
		default:
			return fmt.Errorf("message %d: unknown role %q: use system, user, assistant or tool", i, msg.Role)
		}
	}
	return nil
}

// AfterResults returns the messages of a request with media moved out of tool results that cannot contain them, into a user
// message after the turn's results. A line of text in both messages identifies the media.
func AfterResults(messages []llm.Message, fits func(*llm.Media) bool) []llm.Message {
	for i := range messages {
		for j := range messages[i].Content {
			if moves(&messages[i], j, fits) {
				return afterResults(messages, fits)
			}
		}
	}
	return messages
}

// moves reports whether a part is media in a result that cannot contain it.
func moves(m *llm.Message, part int, fits func(*llm.Media) bool) bool {
	media := m.Content[part].Media
	return m.Role == llm.RoleTool && media != nil && !fits(media)
}

func afterResults(messages []llm.Message, fits func(*llm.Media) bool) []llm.Message {
	out := make([]llm.Message, 0, len(messages)+1)
	var moved []llm.Part
	number := 0
	for _, m := range messages {
		if m.Role != llm.RoleTool && moved != nil {
			out, moved = append(out, llm.Message{Role: llm.RoleUser, Content: moved}), nil
		}
		parts := slices.Clone(m.Content)
		for i, p := range m.Content {
			if moves(&m, i, fits) {
				number++
				parts[i] = llm.Part{Text: fmt.Sprintf("[attachment %d: %s; it follows the results]", number, p.Media)}
				moved = append(moved, llm.Part{Text: fmt.Sprintf("Attachment %d:", number)}, p)
			}
		}
		m.Content = parts
		out = append(out, m)
	}
	if moved != nil {
		out = append(out, llm.Message{Role: llm.RoleUser, Content: moved})
	}
	return out
}

// OneOf reports whether a media type is in a list, whose entries may end in *.
func OneOf(mediaType string, list ...string) bool {
	for _, one := range list {
		prefix, any := strings.CutSuffix(one, "*")
		if mediaType == one || any && strings.HasPrefix(mediaType, prefix) {
			return true
		}
	}
	return false
}
