package openai

import "github.com/stonelayer/stone/internal/jsonv2"

// read decodes an event. The result is valid until the next call.
func (d *chatDecoder) read(data []byte) (*chunk, error) {
	if d.scan(data) {
		return &d.scanned, nil
	}
	c := new(chunk)
	return c, jsonv2.UnmarshalLenient(data, c)
}

// scan decodes an event into d.scanned as UnmarshalLenient would, at half the cost. If it returns false, the event must be
// decoded with UnmarshalLenient.
func (d *chatDecoder) scan(data []byte) bool {
	s, c := &d.scanner, &d.scanned
	*c = chunk{Choices: c.Choices[:0]}
	s.Reset(data)
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "id":
			c.ID = s.Intern(d.reply.ID)
		case "model":
			c.Model = s.Intern(d.reply.Model)
		case "object":
			c.Object = s.Intern("chat.completion.chunk")
		case "choices":
			c.Choices = scanChoices(s, c.Choices[:0])
		case "usage":
			c.Usage = s.Clone()
		case "x_groq":
			s.Decode(&c.Groq)
		case "timings":
			c.Timings = s.Clone()
		case "error":
			c.Error = s.Clone()
		case "message":
			c.Message = s.Clone()
		case "detail":
			c.Detail = s.Clone()
		default:
			s.Skip()
		}
	}
	return s.Done()
}

// scanChoices keeps the choices that [choices.UnmarshalJSONFrom] keeps.
func scanChoices(s *jsonv2.Scanner, kept choices) choices {
	if !s.Enter('[') {
		return nil
	}
	for s.More() {
		if len(kept) == maxChoices {
			s.Skip()
			continue
		}
		kept = append(kept, choice{})
		scanChoice(s, &kept[len(kept)-1])
	}
	return kept
}

func scanChoice(s *jsonv2.Scanner, c *choice) {
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "delta":
			scanDelta(s, &c.Delta)
		case "message":
			s.Decode(&c.Message)
		case "finish_reason":
			c.FinishReason = s.Text()
		default:
			s.Skip()
		}
	}
}

// scanDelta decodes a delta. A repeated member extends the first one, as with UnmarshalLenient.
func scanDelta(s *jsonv2.Scanner, in *delta) {
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "content":
			if in.text, in.Content = "", nil; s.Kind() == '"' {
				in.text = s.Text()
			} else {
				in.Content = s.Clone()
			}
		case "reasoning_content":
			in.ReasoningContent = s.Clone()
		case "reasoning":
			in.Reasoning = s.Clone()
		case "reasoning_details":
			in.ReasoningDetails = s.Clone()
		case "refusal":
			in.Refusal = s.Text()
		case "tool_calls":
			s.Decode(&in.ToolCalls)
		case "annotations":
			s.Decode(&in.Annotations)
		default:
			s.Skip()
		}
	}
}
