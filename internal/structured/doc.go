// Package structured gets JSON of a schema out of a model. Package agent and the capabilities of
// call/model use it.
//
// A [Form] describes one kind of answer. It makes the response format of the requests, reads
// the answers, and says what to tell a model whose answer does not fit:
//
//	order, err := schema.For[Order]()
//	form := structured.Of("order", order)
//	req := &llm.Request{Messages: messages, ResponseFormat: form.Format()}
//	reply, err := llm.Collect(ctx, model, req)
//	data, misfit := form.Read(ctx, reply)
//
// # What providers enforce
//
// Providers enforce only a part of JSON Schema, and refuse a request whose schema has more. A
// [Dialect] is that part for one provider: [OpenAI], [Anthropic], [Gemini]. The packages of the
// providers project the format of a request to their dialect, so callers always pass the whole
// schema:
//
//   - The projection can allow more than the schema, because no provider knows every keyword. The
//     descriptions in the projection tell the model the constraints that are left out, such as a
//     minimum, and Read checks them.
//   - A part that the provider cannot enforce is asked for in another form, which Read takes back: an
//     object of free names as the list of its members, each with "key" and "value"; a property whose
//     name is refused under another name; a value of any kind, or of its own kind where that is not
//     enforced, as JSON text. A partial answer shows that form.
//   - If the provider cannot enforce a schema at all, because it is too large or no object, the format
//     is not enforced. The system text tells the model the schema instead; see
//     [System]. The same happens if Anthropic's server refuses a schema as too complex.
//   - A schema whose values are not objects, such as a list or a number, is asked for as the
//     property "value" of an object, and Read takes it out again.
//
// # What Read accepts
//
// Read takes JSON out of a code block, takes null for the absence of a property, and checks the
// whole schema. A [Misfit] says what to tell the model, which gets one more chance. The caller sends
// that message, because the caller owns the conversation, its budget and its records.
package structured
