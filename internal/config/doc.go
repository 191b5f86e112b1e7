// Package config finds the directory .stone of a project and reads its settings.
//
// The directory belongs to the project in which it stands, as .git does: it is
// looked for in a directory and in those above it. It holds a Go package whose
// Pipeline is the project's own, and may hold settings.json:
//
//	{
//		"pipeline": "./internal/review",
//		"provider": "openai",
//		"model": "gpt-5-mini",
//		"url": "http://localhost:8000"
//	}
//
// All keys are optional, their values are strings:
//
//   - pipeline is the directory of a Go package, or a plan file, seen from the
//     project's directory. Default: .stone itself.
//   - provider is the protocol in which the model is asked: openai or anthropic.
//     Default: openai.
//   - model is the model that is asked.
//   - url is the server. Default: that of the provider.
//
// Settings are for sharing, so there are no secrets among them: keys of providers
// come from the environment.
package config
