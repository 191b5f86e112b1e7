package acp

// Choices is choices, for tests.
var Choices = choices
