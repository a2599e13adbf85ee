package main

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestCustomInfoIsMergedByKey(t *testing.T) {
	info := func(names ...string) *structpb.Struct {
		made := &structpb.Struct{} // without a map, as an empty one comes over the wire
		for _, name := range names {
			if made.Fields == nil {
				made.Fields = map[string]*structpb.Value{}
			}
			made.Fields[name] = structpb.NewBoolValue(true)
		}
		return made
	}
	for _, c := range []struct {
		before, latest *structpb.Struct
		want           int
	}{
		{nil, nil, 0},
		{nil, info("a"), 1},
		{info("a"), nil, 1},
		{info(), info("a"), 1},
		{info("a"), info(), 1},
		{info("a", "b"), info("b", "c"), 3},
	} {
		if got := len(mergeCustomInfo(c.before, c.latest).GetFields()); got != c.want {
			t.Errorf("%v and %v: %d keys, want %d", c.before, c.latest, got, c.want)
		}
	}
}
