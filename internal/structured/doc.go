// Package structured obtains JSON that matches a schema from a model. It is used by package agent and the capabilities of
// call/model.
//
// A [Form] describes one kind of answer. It provides the response format for requests, reads answers, and creates the message to a
// model whose answer does not match:
//
//	order, err := schema.For[Order]()
//	form := structured.Of("order", order)
//	req := &llm.Request{Messages: messages, ResponseFormat: form.Format()}
//	reply, err := llm.Collect(ctx, model, req)
//	data, misfit := form.Read(ctx, reply)
//
// # What providers enforce
//
// Providers enforce only a subset of JSON Schema, and refuse a request whose schema contains more. A [Dialect] is this subset for
// one provider: [OpenAI], [Anthropic], [Gemini]. The provider packages project the format of a request onto their dialect, so
// callers always pass the whole schema:
//
//   - The projection may allow more than the schema, because no provider supports every keyword. Constraints that are omitted,
//     such as a minimum, are written into the descriptions for the model, and Read checks them.
//   - A part that the provider cannot enforce is requested in a different form, which Read converts back: an object with arbitrary
//     names becomes the list of its members, each with "key" and "value"; a property whose name is refused is renamed; and a value
//     of any kind, or of a kind that cannot be enforced, becomes JSON text. Partial answers show this form.
//   - If the provider cannot enforce a schema at all, because it is too large or not an object, the format is not enforced.
//     Instead, the system text describes the schema to the model; see [System]. The same happens if Anthropic's server refuses a
//     schema because it is too complex.
//   - A value that is not an object, such as a list or a number, is requested as the property "value" of an object, and Read
//     extracts it again.
//
// # What Read accepts
//
// Read extracts JSON from a code block, treats null as a missing property, and checks the whole schema. A [Misfit] contains the
// message to the model, which then gets another chance. The caller sends this message, because the caller controls the
// conversation, its budget and its records.
package structured
