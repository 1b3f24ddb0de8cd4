//! The questions, each as a call and as the specification's statement, with the columns in the
//! order of the call's answer, and periods as their first day.

use serde_json::{Value as Json, json};

/// A question of TPC-H.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its number and title.
    pub name: &'static str,
    /// The arguments of `aggregate`.
    pub call: Json,
    /// The statement, for PostgreSQL.
    pub sql: &'static str,
    /// Whether all groups are read, page after page.
    pub is_walked: bool,
    /// Whether the answer may be empty at a small scale.
    pub may_be_empty: bool,
}

fn question(name: &'static str, call: Json, sql: &'static str) -> Question {
    Question {
        name,
        call,
        sql,
        is_walked: false,
        may_be_empty: false,
    }
}

fn walked(name: &'static str, call: Json, sql: &'static str) -> Question {
    Question {
        is_walked: true,
        ..question(name, call, sql)
    }
}

/// The questions that a single call can answer.
#[expect(clippy::too_many_lines, reason = "one entry for each question")]
pub fn questions() -> Vec<Question> {
    vec![
        question(
            "Q1: pricing summary",
            json!({
                "stream": "lineitem",
                "metrics": [
                    "sum:l_quantity", "sum:l_extendedprice", "sum:amount", "sum:charge",
                    "avg:l_quantity", "avg:l_extendedprice", "avg:l_discount", "count",
                ],
                "group_by": ["l_returnflag", "l_linestatus"],
                "filter": {"l_shipdate": {"lte": "1998-09-02"}},
                "sort": ["l_returnflag", "l_linestatus"],
            }),
            "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
                sum(l_extendedprice * (1 - l_discount)),
                sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
                avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
             from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day
             group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus",
        ),
        question(
            "Q3: shipping priority",
            json!({
                "stream": "lineitem",
                "metrics": ["revenue"],
                "group_by": ["l_orderkey", "order.o_orderdate", "order.o_shippriority"],
                "filter": {
                    "order.customer.c_mktsegment": "BUILDING",
                    "order.o_orderdate": {"lt": "1995-03-15"},
                    "l_shipdate": {"gt": "1995-03-15"},
                },
                "sort": ["-revenue", "order.o_orderdate"],
                "limit": 10,
            }),
            "select l_orderkey, o_orderdate, o_shippriority,
                sum(l_extendedprice * (1 - l_discount)) as revenue
             from customer, orders, lineitem
             where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
                and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
             group by l_orderkey, o_orderdate, o_shippriority
             order by revenue desc, o_orderdate limit 10",
        ),
        question(
            "Q4: order priority checking",
            json!({
                "stream": "orders",
                "metrics": ["count"],
                "group_by": ["o_orderpriority"],
                "filter": {
                    "o_orderdate": {"gte": "1993-07-01", "lt": "1993-10-01"},
                    "lines": {"some": {"l_commitdate": {"lt": {"field": "l_receiptdate"}}}},
                },
                "sort": ["o_orderpriority"],
            }),
            "select o_orderpriority, count(*) from orders
             where o_orderdate >= date '1993-07-01'
                and o_orderdate < date '1993-07-01' + interval '3' month
                and exists (select * from lineitem
                    where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
             group by o_orderpriority order by o_orderpriority",
        ),
        question(
            "Q5: local supplier volume",
            json!({
                "stream": "lineitem",
                "metrics": ["revenue"],
                "group_by": ["supplier.nation.n_name"],
                "filter": {
                    "order.customer.c_nationkey": {"eq": {"field": "supplier.s_nationkey"}},
                    "supplier.nation.region.r_name": "ASIA",
                    "order.o_orderdate": {"gte": "1994-01-01", "lt": "1995-01-01"},
                },
                "sort": ["-revenue"],
            }),
            "select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
             from customer, orders, lineitem, supplier, nation, region
             where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
                and c_nationkey = s_nationkey and s_nationkey = n_nationkey
                and n_regionkey = r_regionkey and r_name = 'ASIA'
                and o_orderdate >= date '1994-01-01'
                and o_orderdate < date '1994-01-01' + interval '1' year
             group by n_name order by revenue desc",
        ),
        question(
            "Q6: forecasting revenue change",
            json!({
                "stream": "lineitem",
                "metrics": ["sum:saved"],
                "filter": {
                    "l_shipdate": {"gte": "1994-01-01", "lt": "1995-01-01"},
                    "l_discount": {"gte": "0.05", "lte": "0.07"},
                    "l_quantity": {"lt": 24},
                },
            }),
            "select sum(l_extendedprice * l_discount) from lineitem
             where l_shipdate >= date '1994-01-01'
                and l_shipdate < date '1994-01-01' + interval '1' year
                and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24",
        ),
        question(
            "Q7: volume shipping",
            json!({
                "stream": "lineitem",
                "metrics": ["revenue"],
                "group_by": ["supplier.nation.n_name", "order.customer.nation.n_name"],
                "group_by_time": {"field": "l_shipdate", "granularity": "year"},
                "filter": {
                    "l_shipdate": {"gte": "1995-01-01", "lte": "1996-12-31"},
                    "any": [
                        {"supplier.nation.n_name": "FRANCE", "order.customer.nation.n_name": "GERMANY"},
                        {"supplier.nation.n_name": "GERMANY", "order.customer.nation.n_name": "FRANCE"},
                    ],
                },
                "sort": ["supplier.nation.n_name", "order.customer.nation.n_name", "l_shipdate"],
            }),
            "select n1.n_name, n2.n_name, date_trunc('year', l_shipdate)::date as l_year,
                sum(l_extendedprice * (1 - l_discount))
             from supplier, lineitem, orders, customer, nation n1, nation n2
             where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
                and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
                and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY')
                    or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
                and l_shipdate between date '1995-01-01' and date '1996-12-31'
             group by 1, 2, 3 order by 1, 2, 3",
        ),
        Question {
            may_be_empty: true,
            ..question(
                "Q8: national market share",
                json!({
                    "stream": "lineitem",
                    "metrics": ["brazil_share"],
                    "group_by_time": {"field": "order.o_orderdate", "granularity": "year"},
                    "filter": {
                        "order.customer.nation.region.r_name": "AMERICA",
                        "order.o_orderdate": {"gte": "1995-01-01", "lte": "1996-12-31"},
                        "part.p_type": "ECONOMY ANODIZED STEEL",
                    },
                }),
                "select date_trunc('year', o_orderdate)::date,
                    round(sum(case when n2.n_name = 'BRAZIL'
                        then l_extendedprice * (1 - l_discount) else 0 end)
                        / sum(l_extendedprice * (1 - l_discount)), 6)
                 from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
                 where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey
                    and o_custkey = c_custkey and c_nationkey = n1.n_nationkey
                    and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
                    and s_nationkey = n2.n_nationkey
                    and o_orderdate between date '1995-01-01' and date '1996-12-31'
                    and p_type = 'ECONOMY ANODIZED STEEL'
                 group by 1 order by 1",
            )
        },
        walked(
            "Q9: product type profit",
            json!({
                "stream": "lineitem",
                "metrics": ["sum:profit"],
                "group_by": ["supplier.nation.n_name"],
                "group_by_time": {"field": "order.o_orderdate", "granularity": "year"},
                "filter": {"part.p_name": {"contains": "green"}},
                "sort": ["supplier.nation.n_name", "-order.o_orderdate"],
            }),
            "select n_name, date_trunc('year', o_orderdate)::date as o_year,
                sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity)
             from part, supplier, lineitem, partsupp, orders, nation
             where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey
                and p_partkey = l_partkey and o_orderkey = l_orderkey
                and s_nationkey = n_nationkey and p_name like '%green%'
             group by 1, 2 order by n_name, o_year desc",
        ),
        question(
            "Q10: returned item reporting",
            json!({
                "stream": "lineitem",
                "metrics": ["revenue"],
                "group_by": [
                    "order.customer.c_custkey", "order.customer.c_name",
                    "order.customer.c_acctbal", "order.customer.c_phone",
                    "order.customer.nation.n_name", "order.customer.c_address",
                    "order.customer.c_comment",
                ],
                "filter": {
                    "order.o_orderdate": {"gte": "1993-10-01", "lt": "1994-01-01"},
                    "l_returnflag": "R",
                },
                "sort": ["-revenue"],
                "limit": 20,
            }),
            "select c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment,
                sum(l_extendedprice * (1 - l_discount)) as revenue
             from customer, orders, lineitem, nation
             where c_custkey = o_custkey and l_orderkey = o_orderkey
                and o_orderdate >= date '1993-10-01'
                and o_orderdate < date '1993-10-01' + interval '3' month
                and l_returnflag = 'R' and c_nationkey = n_nationkey
             group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
             order by revenue desc, c_custkey limit 20",
        ),
        question(
            "Q12: shipping modes and order priority",
            json!({
                "stream": "lineitem",
                "metrics": [
                    {"op": "count", "as": "high",
                     "filter": {"order.o_orderpriority": ["1-URGENT", "2-HIGH"]}},
                    {"op": "count", "as": "low",
                     "filter": {"order.o_orderpriority": {"not_in": ["1-URGENT", "2-HIGH"]}}},
                ],
                "group_by": ["l_shipmode"],
                "filter": {
                    "l_shipmode": ["MAIL", "SHIP"],
                    "l_commitdate": {"lt": {"field": "l_receiptdate"}},
                    "l_shipdate": {"lt": {"field": "l_commitdate"}},
                    "l_receiptdate": {"gte": "1994-01-01", "lt": "1995-01-01"},
                },
                "sort": ["l_shipmode"],
            }),
            "select l_shipmode,
                sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end),
                sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end)
             from orders, lineitem
             where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP')
                and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
                and l_receiptdate >= date '1994-01-01'
                and l_receiptdate < date '1994-01-01' + interval '1' year
             group by l_shipmode order by l_shipmode",
        ),
        question(
            "Q14: promotion effect",
            json!({
                "stream": "lineitem",
                "metrics": ["promo_share"],
                "filter": {"l_shipdate": {"gte": "1995-09-01", "lt": "1995-10-01"}},
            }),
            "select round(100.00 * sum(case when p_type like 'PROMO%'
                    then l_extendedprice * (1 - l_discount) else 0 end)
                / sum(l_extendedprice * (1 - l_discount)), 6)
             from lineitem, part
             where l_partkey = p_partkey and l_shipdate >= date '1995-09-01'
                and l_shipdate < date '1995-09-01' + interval '1' month",
        ),
        question(
            "Q15: top supplier",
            json!({
                "stream": "lineitem",
                "metrics": ["revenue"],
                "group_by": [
                    "supplier.s_suppkey", "supplier.s_name", "supplier.s_address",
                    "supplier.s_phone",
                ],
                "filter": {"l_shipdate": {"gte": "1996-01-01", "lt": "1996-04-01"}},
                "sort": ["-revenue"],
                "limit": 1,
            }),
            "with revenue (supplier_no, total_revenue) as (
                select l_suppkey, sum(l_extendedprice * (1 - l_discount)) from lineitem
                where l_shipdate >= date '1996-01-01'
                    and l_shipdate < date '1996-01-01' + interval '3' month
                group by l_suppkey)
             select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
             where s_suppkey = supplier_no
                and total_revenue = (select max(total_revenue) from revenue)
             order by s_suppkey",
        ),
        walked(
            "Q16: parts and supplier relationship",
            json!({
                "stream": "partsupp",
                "metrics": ["count_distinct:ps_suppkey"],
                "group_by": ["part.p_brand", "part.p_type", "part.p_size"],
                "filter": {
                    "part.p_brand": {"ne": "Brand#45"},
                    "part": {"none": {"p_type": {"starts_with": "MEDIUM POLISHED"}}},
                    "part.p_size": [49, 14, 23, 45, 19, 3, 36, 9],
                    "supplier": {"none": {"s_comment": {"contains": "Complaints"}}},
                },
                "sort": [
                    "-count_distinct_ps_suppkey", "part.p_brand", "part.p_type", "part.p_size",
                ],
            }),
            "select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
             from partsupp, part
             where p_partkey = ps_partkey and p_brand <> 'Brand#45'
                and p_type not like 'MEDIUM POLISHED%'
                and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
                and ps_suppkey not in (select s_suppkey from supplier
                    where s_comment like '%Customer%Complaints%')
             group by p_brand, p_type, p_size
             order by supplier_cnt desc, p_brand collate \"C\", p_type collate \"C\", p_size",
        ),
        question(
            "Q17: small-quantity-order revenue",
            json!({
                "stream": "lineitem",
                "metrics": ["yearly_loss"],
                "filter": {
                    "part.p_brand": "Brand#23",
                    "part.p_container": "MED BOX",
                    "l_quantity": {"lt": 5},
                },
            }),
            // The specification compares with a fifth of the part's own mean quantity, which is
            // near 25.
            "select round(sum(l_extendedprice) / 7.0, 6) from lineitem, part
             where p_partkey = l_partkey and p_brand = 'Brand#23'
                and p_container = 'MED BOX' and l_quantity < 5",
        ),
        Question {
            may_be_empty: true,
            ..question(
                "Q18: large volume customer",
                json!({
                    "stream": "lineitem",
                    "metrics": ["sum:l_quantity"],
                    "group_by": [
                        "order.customer.c_name", "order.customer.c_custkey", "l_orderkey",
                        "order.o_orderdate", "order.o_totalprice",
                    ],
                    "having": {"sum_l_quantity": {"gt": 300}},
                    "sort": ["-order.o_totalprice", "order.o_orderdate"],
                    "limit": 100,
                }),
                "select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
                 from customer, orders, lineitem
                 where o_orderkey in (select l_orderkey from lineitem
                        group by l_orderkey having sum(l_quantity) > 300)
                    and c_custkey = o_custkey and o_orderkey = l_orderkey
                 group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
                 order by o_totalprice desc, o_orderdate limit 100",
            )
        },
        question(
            "Q19: discounted revenue",
            json!({
                "stream": "lineitem",
                "metrics": ["revenue"],
                "filter": {
                    "l_shipmode": ["AIR", "AIR REG"],
                    "l_shipinstruct": "DELIVER IN PERSON",
                    "any": [
                        {"part.p_brand": "Brand#12",
                         "part.p_container": ["SM CASE", "SM BOX", "SM PACK", "SM PKG"],
                         "l_quantity": {"gte": 1, "lte": 11}, "part.p_size": {"gte": 1, "lte": 5}},
                        {"part.p_brand": "Brand#23",
                         "part.p_container": ["MED BAG", "MED BOX", "MED PKG", "MED PACK"],
                         "l_quantity": {"gte": 10, "lte": 20}, "part.p_size": {"gte": 1, "lte": 10}},
                        {"part.p_brand": "Brand#34",
                         "part.p_container": ["LG CASE", "LG BOX", "LG PACK", "LG PKG"],
                         "l_quantity": {"gte": 20, "lte": 30}, "part.p_size": {"gte": 1, "lte": 15}},
                    ],
                },
            }),
            "select sum(l_extendedprice * (1 - l_discount)) from lineitem, part
             where p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG')
                and l_shipinstruct = 'DELIVER IN PERSON'
                and ((p_brand = 'Brand#12'
                        and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                        and l_quantity between 1 and 11 and p_size between 1 and 5)
                    or (p_brand = 'Brand#23'
                        and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                        and l_quantity between 10 and 20 and p_size between 1 and 10)
                    or (p_brand = 'Brand#34'
                        and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                        and l_quantity between 20 and 30 and p_size between 1 and 15))",
        ),
    ]
}
