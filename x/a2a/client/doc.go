// Package client turns agents that speak the Agent2Agent protocol (A2A) into capabilities. It supports versions 1.0 and 0.3,
// over JSON-RPC or REST:
//
//	registry := call.NewRegistry(
//		client.New(call.Metadata{ID: "agent/travel", Intents: []string{"trip/plan"}}, client.Config{URL: "https://travel.example.com"}),
//	)
//
// A request's input is sent as the message: as text if it is a string or an object with one string, such as {"text": …},
// otherwise as data. Files that the input's schema marks, or without a schema the llm.Media in a list "media", are sent as file
// parts. If the agent answers with one data part, out is its data; otherwise out is {"text": …}, with "data" for several data
// parts and "media" for files.
//
// # Durability
//
// In a recorded run, the remote task's id is recorded as soon as it is known, and a resumed run waits for this task. The ids of
// the message and its context derive from the request's key. If the process dies before the id is recorded, a resumed run finds
// the task by its context where the agent lists tasks; otherwise it sends the same message again, which many agents recognise. A
// task that failed or is lost is replaced by a new one when the run is resumed.
//
// When a task needs input, the run asks its people, with the agent's words and choices. Outside a run, or if nobody can be asked,
// the request fails and the error has the agent's question. A request that is cancelled or times out cancels the task; draining a
// run does not.
package client
