// Package repetition notices, while a model is still writing, that it is stuck: in a
// verbatim loop, or in text that continues without adding anything new.
//
// There are two detectors. [NGram] counts every window of 100 bytes and trips when
// one has been seen for the fourth time; it is exact and works byte by byte.
// [Compression] deflates the last kilobyte at every tick (five seconds) and trips when
// three ticks in a row found it to shrink below 0.18 of its size. A [Watcher] feeds
// both. What has tripped stays tripped.
//
// [Guard] puts watchers around any llm.Model, one for the text and one for the
// thinking, stops a stream that trips, tells the model that it got stuck, and asks
// again. The providers do that by themselves when they are given a factory:
//
//	openai.New(openai.Config{Model: "qwen3", Repetition: repetition.New})
package repetition
