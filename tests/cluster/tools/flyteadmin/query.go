package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
)

// columns are the fields of an entity that a list may be filtered and sorted by, as text.
type columns[V any] map[string]func(V) string

// listRequest is what all requests for a list have in common.
type listRequest interface {
	GetLimit() uint32
	GetToken() string
	GetFilters() string
	GetSortBy() *admin.Sort
}

// filterExpression is one part of "eq(name,x)+value_in(phase,A;B)"
// (flyteadmin/pkg/manager/impl/util/filters.go:29).
var filterExpression = regexp.MustCompile(`(.+)\((.+),\s?(.+)\)`)

// comparisons are FlyteAdmin's filter functions (flyteadmin/pkg/common/filters.go:72).
var comparisons = map[string]func(value string, wanted []string) bool{
	"eq":           func(value string, wanted []string) bool { return value == wanted[0] },
	"ne":           func(value string, wanted []string) bool { return value != wanted[0] },
	"contains":     func(value string, wanted []string) bool { return strings.Contains(value, wanted[0]) },
	"not_like":     func(value string, wanted []string) bool { return !strings.Contains(value, wanted[0]) },
	"gt":           func(value string, wanted []string) bool { return compare(value, wanted[0]) > 0 },
	"gte":          func(value string, wanted []string) bool { return compare(value, wanted[0]) >= 0 },
	"lt":           func(value string, wanted []string) bool { return compare(value, wanted[0]) < 0 },
	"lte":          func(value string, wanted []string) bool { return compare(value, wanted[0]) <= 0 },
	"value_in":     func(value string, wanted []string) bool { return slices.Contains(wanted, value) },
	"value_not_in": func(value string, wanted []string) bool { return !slices.Contains(wanted, value) },
}

// query filters, sorts and cuts rows as a request says. The token of a page is the offset of the next, and
// is empty where a page was not full. Without sort_by the order is byDefault's, else that of creation.
func query[V any](rows []V, known columns[V], request listRequest, byDefault string) ([]V, string, error) {
	rows, err := filter(rows, known, request.GetFilters())
	if err != nil {
		return nil, "", err
	}
	column, descending := byDefault, false
	if sort := request.GetSortBy(); sort.GetKey() != "" {
		column, descending = sort.GetKey(), sort.GetDirection() == admin.Sort_DESCENDING
	}
	if column != "" {
		read, ok := known[column]
		if !ok {
			return nil, "", invalid("invalid sort key '%s'", column)
		}
		slices.SortStableFunc(rows, func(a, b V) int {
			if descending {
				a, b = b, a
			}
			return compare(read(a), read(b))
		})
	}
	offset := 0
	if request.GetToken() != "" {
		if offset, err = strconv.Atoi(request.GetToken()); err != nil || offset < 0 {
			return nil, "", invalid("invalid pagination token %s", request.GetToken())
		}
	}
	rows = rows[min(offset, len(rows)):]
	limit := int(request.GetLimit())
	if limit > 0 && len(rows) >= limit {
		return rows[:limit], strconv.Itoa(offset + limit), nil
	}
	return rows, "", nil
}

func filter[V any](rows []V, known columns[V], filters string) ([]V, error) {
	if filters == "" {
		return rows, nil
	}
	for _, expression := range strings.Split(filters, "+") {
		parts := filterExpression.FindStringSubmatch(expression)
		if parts == nil {
			return nil, invalid("invalid value for filters")
		}
		matches, ok := comparisons[parts[1]]
		if !ok {
			return nil, invalid("unrecognized filter function: %s", parts[1])
		}
		read, ok := known[parts[2]]
		if !ok {
			return nil, invalid("'%s' is invalid filter", parts[2])
		}
		wanted := strings.Split(parts[3], ";")
		rows = slices.DeleteFunc(slices.Clone(rows), func(row V) bool { return !matches(read(row), wanted) })
	}
	return rows, nil
}

// compare orders numbers as numbers and times as times, and all else as text.
func compare(a, b string) int {
	if x, err := strconv.ParseFloat(a, 64); err == nil {
		if y, err := strconv.ParseFloat(b, 64); err == nil {
			return cmp.Compare(x, y)
		}
	}
	if x, err := time.Parse(time.RFC3339Nano, a); err == nil {
		if y, err := time.Parse(time.RFC3339Nano, b); err == nil {
			return x.Compare(y)
		}
	}
	return strings.Compare(a, b)
}

func moment(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return at.AsTime().Format(time.RFC3339Nano)
}

func seconds(length *durationpb.Duration) string {
	return strconv.FormatFloat(length.AsDuration().Seconds(), 'f', -1, 64)
}

// inScope checks what a list of entities must say and keeps those of its project, domain and, if given, name
// (flyteadmin/pkg/manager/impl/validation/validation.go:146, util/filters.go:212).
func inScope[V any](rows []V, known columns[V], id *admin.NamedEntityIdentifier, limit uint32) ([]V, error) {
	if id == nil {
		return nil, missing("id")
	}
	if err := required(field{"project", id.GetProject()}, field{"domain", id.GetDomain()}); err != nil {
		return nil, err
	}
	if limit == 0 {
		return nil, invalid("invalid value for limit")
	}
	return slices.DeleteFunc(rows, func(row V) bool {
		return known["project"](row) != id.GetProject() || known["domain"](row) != id.GetDomain() ||
			(id.GetName() != "" && known["name"](row) != id.GetName())
	}), nil
}

// names are the distinct names of the entities of a project and domain.
func names[V any](rows []V, known columns[V], request *admin.NamedEntityIdentifierListRequest) (
	*admin.NamedEntityIdentifierList, error,
) {
	scope := &admin.NamedEntityIdentifier{Project: request.GetProject(), Domain: request.GetDomain()}
	rows, err := inScope(rows, known, scope, request.GetLimit())
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(row V) bool {
		name := known["name"](row)
		repeated := seen[name]
		seen[name] = true
		return repeated
	})
	rows, token, err := query(rows, known, request, "")
	if err != nil {
		return nil, err
	}
	listed := &admin.NamedEntityIdentifierList{Token: token}
	for _, row := range rows {
		listed.Entities = append(listed.Entities, &admin.NamedEntityIdentifier{
			Project: request.GetProject(), Domain: request.GetDomain(), Name: known["name"](row),
		})
	}
	return listed, nil
}
