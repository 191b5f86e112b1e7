package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func checkMessages(k *keeper, body map[string]any) error {
	if n, _ := body["max_tokens"].(float64); n < 1 || n > 16384 {
		return errors.New("max_tokens")
	}
	for _, t := range list(body["tools"]) {
		if name := text(object(t)["name"]); !plainName.MatchString(name) {
			return fmt.Errorf("the name %q does not match", name)
		}
	}
	thinking := object(body["thinking"])["type"] == "enabled"
	before, ids, open, thought := "", map[string]bool{}, []string(nil), true
	for _, m := range list(body["messages"]) {
		m := object(m)
		role, content := text(m["role"]), list(m["content"])
		switch {
		case role == before || before == "" && role != "user":
			return errors.New("roles must alternate, and begin with the user")
		case len(content) == 0:
			return errors.New("messages must have non-empty content")
		}
		answers := 0
		for i, b := range content {
			b := object(b)
			switch kind := text(b["type"]); kind {
			case "text":
				if strings.TrimSpace(text(b["text"])) == "" {
					return errors.New("text content blocks must contain non-whitespace text")
				}
			case "thinking":
				if !k.given[text(b["signature"])] {
					return errors.New("Invalid `signature` in `thinking` block")
				}
			case "tool_use":
				id := text(b["id"])
				if ids[id] || !plainName.MatchString(id) {
					return fmt.Errorf("the id %q", id)
				}
				ids[id], open = true, append(open, id)
				if _, isObject := b["input"].(map[string]any); !isObject {
					return errors.New("input")
				}
			case "tool_result":
				at := slices.Index(open, text(b["tool_use_id"]))
				if at < 0 || i != answers {
					return fmt.Errorf("unexpected tool_result %q", b["tool_use_id"])
				}
				open, answers = slices.Delete(open, at, at+1), answers+1
				if b["is_error"] == true && len(list(b["content"])) == 0 {
					return errors.New("content cannot be empty if is_error is true")
				}
				content = append(content, list(b["content"])...)
			case "image":
				s := object(b["source"])
				if err := picture(text(s["media_type"]), text(s["data"])); err != nil || len(text(s["data"])) > 5<<20 {
					return fmt.Errorf("image: %v", err)
				}
			}
		}
		if role == "user" && len(open) > 0 {
			return errors.New("tool_use ids were found without tool_result blocks immediately after")
		}
		if role == "user" && answers == 0 {
			thought = true
		} else if role == "assistant" {
			thought = thought && object(content[0])["type"] == "thinking"
		}
		before = role
	}
	if before != "user" {
		return errors.New("the conversation must end with a user message")
	}
	if thinking && !thought {
		return errors.New("Expected `thinking` or `redacted_thinking`, but found `tool_use`")
	}
	return nil
}

func answerMessages(k *keeper, calls bool) string {
	var b strings.Builder
	send := func(format string, args ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", args...) }
	signature := fmt.Sprintf("signature %d", k.n)
	k.given[signature] = true
	send(`{"type":"message_start","message":{"id":"m%d","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`, k.n)
	send(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":%q}}`, signature)
	send(`{"type":"content_block_stop","index":0}`)
	send(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"\n\n"}}`)
	send(`{"type":"content_block_stop","index":1}`)
	reason := "tool_use"
	if calls {
		for i, name := range []string{"1c_read", "shot", "nothing"} {
			send(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d_%d","name":%q,"input":{"text":"a"}}}`, i+2, k.n, i, name)
			send(`{"type":"content_block_stop","index":%d}`, i+2)
		}
	} else {
		reason = "end_turn"
		send(`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"done"}}`)
		send(`{"type":"content_block_stop","index":2}`)
	}
	send(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":2}}`, reason)
	send(`{"type":"message_stop"}`)
	return b.String()
}

func checkGemini(k *keeper, body map[string]any) error {
	for _, t := range list(body["tools"]) {
		for _, f := range list(object(t)["functionDeclarations"]) {
			if name := text(object(f)["name"]); !geminiName.MatchString(name) {
				return fmt.Errorf("Invalid function name %q", name)
			}
		}
	}
	contents := list(body["contents"])
	last := 0 // the message of a user whose turn is open
	for i, c := range contents {
		for _, p := range list(object(c)["parts"]) {
			if object(p)["text"] != nil && text(object(c)["role"]) == "user" {
				last = i
			}
		}
	}
	before, calls := "", 0
	for i, c := range contents {
		c := object(c)
		role, parts := text(c["role"]), list(c["parts"])
		if role == before || before == "" && role != "user" || len(parts) == 0 {
			return errors.New("turns must alternate, begin with the user, and have parts")
		}
		results, made := 0, 0
		for _, p := range parts {
			p := object(p)
			if call := object(p["functionCall"]); call != nil {
				if made++; made == 1 && i > last && text(p["thoughtSignature"]) == "" {
					return errors.New("Function call is missing a thought_signature")
				}
			}
			if s := text(p["thoughtSignature"]); s != "" && !k.given[s] && s != "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=" {
				return errors.New("Thought signature is not valid")
			}
			if object(p["functionResponse"]) != nil {
				results++
			}
			for _, media := range append(list(object(p["functionResponse"])["parts"]), any(p)) {
				if data := object(object(media)["inlineData"]); data != nil {
					if err := picture(text(data["mimeType"]), text(data["data"])); err != nil {
						return err
					}
				}
			}
		}
		if results != calls {
			return errors.New("the number of function response parts must equal the number of function call parts")
		}
		before, calls = role, made
	}
	if before != "user" {
		return errors.New("the last turn is the model's")
	}
	return nil
}

func answerGemini(k *keeper, calls bool) string {
	signature := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "gemini %d", k.n))
	k.given[signature] = true
	parts := fmt.Sprintf(`[{"text":"done","thoughtSignature":%q}]`, signature)
	if calls {
		parts = fmt.Sprintf(`[{"functionCall":{"name":"_1c_read","args":{"text":"a"}},"thoughtSignature":%q},{"functionCall":{"name":"shot","args":{"text":"b"}}}]`, signature)
	}
	return fmt.Sprintf("data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":%s},\"finishReason\":\"STOP\"}]}\n\n", parts)
}

func checkResponses(k *keeper, body map[string]any) error {
	for _, t := range list(body["tools"]) {
		if name := text(object(t)["name"]); !plainName.MatchString(name) {
			return fmt.Errorf("the name %q does not match", name)
		}
	}
	var open []string
	ids, calls, thought, end := map[string]bool{}, map[string]bool{}, false, ""
	for _, i := range list(body["input"]) {
		i := object(i)
		kind, id, call := text(i["type"]), text(i["id"]), text(i["call_id"])
		if id != "" && (ids[id] || !k.given[id]) {
			return fmt.Errorf("Duplicate item found with id %s, or not found", id)
		}
		if ids[id] = true; thought && kind != "message" && kind != "function_call" {
			return errors.New("reasoning was provided without its required following item")
		}
		thought = kind == "reasoning"
		switch kind {
		case "reasoning":
			if s := text(i["encrypted_content"]); !k.given[s] || i["content"] != nil || i["status"] != nil {
				return errors.New("The encrypted content could not be verified")
			}
		case "function_call":
			if call == "" || len(call) > 64 || calls[call] || !json.Valid([]byte(text(i["arguments"]))) || !plainName.MatchString(text(i["name"])) {
				return fmt.Errorf("function call %q of %q with %q", call, i["name"], i["arguments"])
			}
			calls[call], open = true, append(open, call)
		case "function_call_output":
			at := slices.Index(open, call)
			if at < 0 {
				return fmt.Errorf("No tool call found for function call output with call_id %s", call)
			}
			open = slices.Delete(open, at, at+1)
		case "message":
			if text(i["role"]) == "user" && len(open) > 0 {
				return fmt.Errorf("No tool output found for function call %v", open)
			}
		default:
			return fmt.Errorf("the type %q", kind)
		}
		end = kind + " " + text(i["role"])
		for _, p := range append(list(i["content"]), list(i["output"])...) {
			if url := text(object(p)["image_url"]); url != "" {
				kind, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
				if err := picture(kind, data); err != nil {
					return err
				}
			}
		}
	}
	if len(open) > 0 || thought || end == "message assistant" {
		return fmt.Errorf("the input ends with %s, open calls %v", end, open)
	}
	return nil
}

func answerResponses(k *keeper, calls bool) string {
	items := []string{fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"secret %d"}`, k.n, k.n)}
	k.given[fmt.Sprint("rs_", k.n)], k.given[fmt.Sprint("secret ", k.n)] = true, true
	if calls {
		for i, input := range []string{`{\"text\":\"a\"}`, `{\"text\":7}`} {
			id := fmt.Sprintf("fc_%d_%d", k.n, i)
			k.given[id] = true
			items = append(items, fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":"call_%d_%d","name":%q,"arguments":"%s","status":"completed"}`, id, k.n, i, []string{"shot", "1c_read"}[i], input))
		}
	} else {
		k.given[fmt.Sprint("msg_", k.n)] = true
		items = append(items, fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":"done","annotations":[]}]}`, k.n))
	}
	var b strings.Builder
	for i, item := range items {
		fmt.Fprintf(&b, "data: {\"type\":\"response.output_item.done\",\"output_index\":%d,\"item\":%s}\n\n", i, item)
	}
	fmt.Fprintf(&b, "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_%d\",\"object\":\"response\",\"status\":\"completed\",\"output\":[%s]}}\n\n", k.n, strings.Join(items, ","))
	return b.String()
}
