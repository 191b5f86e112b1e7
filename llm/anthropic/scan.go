package anthropic

import "github.com/stonelayer/stone/internal/jsonv2"

// read reads an event. The result is valid until the next one.
func (d *decoder) read(data []byte) (*event, error) {
	if d.scan(data) {
		return &d.scanned, nil
	}
	e := new(event)
	return e, jsonv2.UnmarshalLenient(data, e)
}

// growing is the type of most events.
const growing = "content_block_delta"

// scan reads an event as UnmarshalLenient does, at a third of its cost. It reports false if that must
// read it.
func (d *decoder) scan(data []byte) bool {
	s, e := &d.scanner, &d.scanned
	*e = event{}
	s.Reset(data)
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "type":
			e.Type = s.Again(growing)
		case "index":
			e.Index = s.Int()
		case "delta":
			if e.Delta, e.piece = nil, nil; e.Type == growing && s.Kind() == '{' {
				e.piece = &d.piece
				scanDelta(s, e.piece)
			} else {
				e.Delta = s.Keep()
			}
		case "message":
			s.Decode(&e.Message)
		case "content_block":
			e.ContentBlock = s.Keep()
		case "usage":
			e.Usage = s.Keep()
		case "error":
			e.Error = s.Keep()
		case "request_id":
			e.RequestID = s.Text()
		default:
			s.Skip()
		}
	}
	return s.Done() && (e.piece == nil || e.Type == growing)
}

// scanDelta reads the delta of a block.
func scanDelta(s *jsonv2.Scanner, in *blockDelta) {
	kind := in.Type // most often that of the last one
	*in = blockDelta{}
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "type":
			in.Type = s.Again(kind)
		case "text":
			in.Text = s.Text()
		case "thinking":
			in.Thinking = s.Text()
		case "partial_json":
			in.PartialJSON = s.Text()
		case "signature":
			in.Signature = s.Text()
		case "citation":
			in.Citation = s.Keep()
		case "content":
			in.Content = s.Keep()
		default:
			s.Skip()
		}
	}
}
