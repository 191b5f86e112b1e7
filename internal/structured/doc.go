// Package structured gets JSON that matches a schema from a model. Package agent and the capabilities of call/model use it.
//
// A [Form] describes one kind of answer. It provides the response format for requests, reads the answers, and says what to tell a
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
// Providers enforce only a part of JSON Schema, and refuse a request whose schema contains more. A [Dialect] is that part for one
// provider: [OpenAI], [Anthropic], [Gemini]. The provider packages project a request's format to their dialect, so callers always
// pass the whole schema:
//
//   - The projection can allow more than the schema, because no provider knows every keyword. The
//     descriptions in the projection tell the model the constraints that are left out, such as a
//     minimum, and Read checks them.
//   - A part that the provider cannot enforce is requested in another form, which Read converts back: an object with free names
//     becomes the list of its members, each with "key" and "value"; a property whose name is refused gets another name; and a
//     value of any kind, or of a kind that is not enforced, becomes JSON text. A partial answer shows that form.
//   - If the provider cannot enforce a schema at all, because it is too large or not an object, the format is not enforced. The
//     system text tells the model the schema instead; see [System]. The same happens if Anthropic's server refuses a schema as
//     too complex.
//   - A value that is not an object, such as a list or a number, is requested as the property "value" of an object, and Read
//     extracts it again.
//
// # What Read accepts
//
// Read extracts JSON from a code block, treats null as the absence of a property, and checks the whole schema. A [Misfit] says
// what to tell the model, which gets one more chance. The caller sends that message, because the caller owns the conversation,
// its budget and its records.
package structured
