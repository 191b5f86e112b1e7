// Package client makes capabilities of agents that speak the Agent2Agent protocol (A2A), versions 1.0 and
// 0.3, over JSON-RPC or REST:
//
//	registry := call.NewRegistry(
//		client.New(call.Metadata{ID: "agent/travel", Intents: []string{"trip/plan"}}, client.Config{URL: "https://travel.example.com"}),
//	)
//
// The input of a request is the message: as text if it is a string or an object of one string, such as
// {"text": …}, otherwise as data. Files that the input's schema marks, or without a schema the llm.Media of a list "media", are
// sent as file parts. The out is the data of the agent's answer if that is one data part, otherwise
// {"text": …}, with "data" for several data parts and "media" for files.
//
// # Durability
//
// In a recorded run, the id of the remote task is recorded as soon as it is known, and a resumed run
// waits for this task. The ids of the message and of its context derive from the key of the request. If
// the process dies before the id is recorded, a resumed run finds the task by its context where the agent lists tasks;
// otherwise it sends the same message again, which many agents recognise. A task that failed or is lost is replaced
// by a new one when the run is resumed.
//
// A task that wants input asks the people of the run, with the agent's words and choices. Outside a run, or where
// nobody can be asked, the request fails with what the agent wants. A request that is cancelled, or whose time is over,
// cancels the task; a run that is drained does not.
package client
