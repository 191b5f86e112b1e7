package page

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stonelayer/stone/x/eval"
)

// Each field that the pages show is one of the recorded report, with the same kind of value.
func TestReportHasTheFieldsOfAnEvaluation(t *testing.T) {
	if reportType != eval.Result.Name() {
		t.Errorf("the type of a report is %s, want %s", reportType, eval.Result.Name())
	}
	fits(t, "report", reflect.TypeFor[Report](), reflect.TypeFor[eval.Report]())
}

// fits compares the fields of a type with the recorded type's.
func fits(t *testing.T, at string, shown, recorded reflect.Type) {
	for shown.Kind() == reflect.Pointer || shown.Kind() == reflect.Slice && recorded.Kind() == reflect.Slice {
		shown, recorded = shown.Elem(), recorded.Elem()
	}
	if shown.Kind() != recorded.Kind() {
		t.Errorf("%s: %v, and %v is recorded", at, shown, recorded)
		return
	}
	if shown.Kind() != reflect.Struct {
		return
	}
	names := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(recorded) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[strings.ToLower(name)] = f.Type
	}
	for _, f := range reflect.VisibleFields(shown) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if names[name] == nil {
			t.Errorf("%s: no %s is recorded", at, name)
			continue
		}
		fits(t, at+"."+name, f.Type, names[name])
	}
}
