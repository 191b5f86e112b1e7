package journal

var Changes = allChanges
