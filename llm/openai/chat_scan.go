package openai

import "github.com/stonelayer/stone/internal/jsonv2"

// read reads an event. The result is valid until the next one.
func (d *chatDecoder) read(data []byte) (*chunk, error) {
	if d.scan(data) {
		return &d.scanned, nil
	}
	c := new(chunk)
	return c, jsonv2.UnmarshalLenient(data, c)
}

// scan reads an event as UnmarshalLenient reads a chunk, at a third of its cost. It reports false if that
// must read it.
func (d *chatDecoder) scan(data []byte) bool {
	s, c := &d.scanner, &d.scanned
	*c = chunk{Choices: c.Choices[:0]}
	s.Reset(data)
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "id":
			c.ID = s.Again(d.reply.ID)
		case "model":
			c.Model = s.Again(d.reply.Model)
		case "object":
			c.Object = s.Again("chat.completion.chunk")
		case "choices":
			c.Choices = scanChoices(s, c.Choices[:0])
		case "usage":
			c.Usage = s.Keep()
		case "x_groq":
			s.Decode(&c.Groq)
		case "timings":
			c.Timings = s.Keep()
		case "error":
			c.Error = s.Keep()
		case "message":
			c.Message = s.Keep()
		case "detail":
			c.Detail = s.Keep()
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
		if last := len(kept) - 1; last > 0 && scanChoice(s, &kept[last]) != 0 {
			kept = kept[:last]
		} else if last == 0 {
			scanChoice(s, &kept[0])
		}
	}
	return kept
}

// scanChoice reads a choice and returns its index.
func scanChoice(s *jsonv2.Scanner, c *choice) int {
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "index":
			c.Index = s.Int()
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
	return c.Index
}

// scanDelta reads a delta. A second one extends the first, as when it is unmarshalled.
func scanDelta(s *jsonv2.Scanner, in *delta) {
	s.Enter('{')
	for name := s.Member(); name != nil; name = s.Member() {
		switch string(name) {
		case "content":
			if in.text, in.Content = "", nil; s.Kind() == '"' {
				in.text = s.Text()
			} else {
				in.Content = s.Keep()
			}
		case "reasoning_content":
			in.ReasoningContent = s.Keep()
		case "reasoning":
			in.Reasoning = s.Keep()
		case "reasoning_details":
			in.ReasoningDetails = s.Keep()
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
