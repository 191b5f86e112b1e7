// Package repetition notices, while a model is still writing, that it is stuck: in a
// verbatim loop, or in text that continues without adding anything new.
//
// [NGram] counts every window of 100 bytes and trips at the fourth occurrence of one; it
// is exact and works byte by byte. [Compression] deflates the last kilobyte at every tick
// (five seconds) and trips if it shrinks below 0.18 of its size three ticks in a row. A
// [Watcher] feeds both. A detector that has tripped stays tripped.
//
// [Guard] puts watchers around any llm.Model, one for the text and one for the
// thinking. It stops a stream that trips, tells the model that it got stuck, and asks
// again. A provider's Config with Repetition set adds the guard itself:
//
//	openai.New(openai.Config{Model: "qwen3", Repetition: repetition.New})
package repetition
