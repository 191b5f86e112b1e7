package anthropic

import "github.com/stonelayer/stone/internal/jsonv2"

// read decodes an event. The result is valid until the next call.
func (d *decoder) read(data []byte) (*event, error) {
	if d.scan(data) {
		return &d.scanned, nil
	}
	e := new(event)
	return e, jsonv2.UnmarshalLenient(data, e)
}

// blockDeltaEvent is the most frequent event type.
const blockDeltaEvent = "content_block_delta"

// scan decodes an event into d.scanned as UnmarshalLenient would, at half the cost. If it returns false, the event must be
// decoded with UnmarshalLenient.
func (d *decoder) scan(data []byte) bool {
	s, e := &d.scanner, &d.scanned
	*e = event{}
	s.Reset(data)
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "type":
			e.Type = s.Intern(blockDeltaEvent)
		case "index":
			e.Index = s.Int()
		case "delta":
			if e.Delta, e.piece = nil, nil; e.Type == blockDeltaEvent && s.Kind() == '{' {
				e.piece = &d.piece
				scanDelta(s, e.piece)
			} else {
				e.Delta = s.Clone()
			}
		case "message":
			s.Decode(&e.Message)
		case "content_block":
			e.ContentBlock = s.Clone()
		case "usage":
			e.Usage = s.Clone()
		case "error":
			e.Error = s.Clone()
		case "request_id":
			e.RequestID = s.Text()
		default:
			s.Skip()
		}
	}
	return s.Done() && (e.piece == nil || e.Type == blockDeltaEvent)
}

// scanDelta reads the delta of a block.
func scanDelta(s *jsonv2.Scanner, in *blockDelta) {
	kind := in.Type // usually the same type as before
	*in = blockDelta{}
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "type":
			in.Type = s.Intern(kind)
		case "text":
			in.Text = s.Text()
		case "thinking":
			in.Thinking = s.Text()
		case "partial_json":
			in.PartialJSON = s.Text()
		case "signature":
			in.Signature = s.Text()
		case "citation":
			in.Citation = s.Clone()
		case "content":
			in.Content = s.Clone()
		default:
			s.Skip()
		}
	}
}
