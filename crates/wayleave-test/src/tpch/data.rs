//! The tables of TPC-H and their records, as SQL statements.

use std::fmt::{Display, Write as _};

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

/// Number of records per INSERT statement.
const BATCH: usize = 500;

struct Table {
    name: &'static str,
    /// Columns with their types.
    columns: &'static [(&'static str, &'static str)],
    key: &'static str,
    indexes: &'static [&'static str],
}

const TABLES: [Table; 8] = [
    Table {
        name: "region",
        columns: &[
            ("r_regionkey", "INTEGER"),
            ("r_name", "VARCHAR(25)"),
            ("r_comment", "VARCHAR(152)"),
        ],
        key: "r_regionkey",
        indexes: &[],
    },
    Table {
        name: "nation",
        columns: &[
            ("n_nationkey", "INTEGER"),
            ("n_name", "VARCHAR(25)"),
            ("n_regionkey", "INTEGER"),
            ("n_comment", "VARCHAR(152)"),
        ],
        key: "n_nationkey",
        indexes: &["n_regionkey"],
    },
    Table {
        name: "supplier",
        columns: &[
            ("s_suppkey", "INTEGER"),
            ("s_name", "VARCHAR(25)"),
            ("s_address", "VARCHAR(40)"),
            ("s_nationkey", "INTEGER"),
            ("s_phone", "VARCHAR(15)"),
            ("s_acctbal", "DECIMAL(15,2)"),
            ("s_comment", "VARCHAR(101)"),
        ],
        key: "s_suppkey",
        indexes: &["s_nationkey"],
    },
    Table {
        name: "part",
        columns: &[
            ("p_partkey", "INTEGER"),
            ("p_name", "VARCHAR(55)"),
            ("p_mfgr", "VARCHAR(25)"),
            ("p_brand", "VARCHAR(10)"),
            ("p_type", "VARCHAR(25)"),
            ("p_size", "INTEGER"),
            ("p_container", "VARCHAR(10)"),
            ("p_retailprice", "DECIMAL(15,2)"),
            ("p_comment", "VARCHAR(23)"),
        ],
        key: "p_partkey",
        indexes: &[],
    },
    Table {
        name: "partsupp",
        columns: &[
            ("ps_partkey", "INTEGER"),
            ("ps_suppkey", "INTEGER"),
            ("ps_availqty", "INTEGER"),
            ("ps_supplycost", "DECIMAL(15,2)"),
            ("ps_comment", "VARCHAR(199)"),
        ],
        key: "ps_partkey, ps_suppkey",
        indexes: &["ps_suppkey"],
    },
    Table {
        name: "customer",
        columns: &[
            ("c_custkey", "INTEGER"),
            ("c_name", "VARCHAR(25)"),
            ("c_address", "VARCHAR(40)"),
            ("c_nationkey", "INTEGER"),
            ("c_phone", "VARCHAR(15)"),
            ("c_acctbal", "DECIMAL(15,2)"),
            ("c_mktsegment", "VARCHAR(10)"),
            ("c_comment", "VARCHAR(117)"),
        ],
        key: "c_custkey",
        indexes: &["c_nationkey"],
    },
    Table {
        name: "orders",
        columns: &[
            ("o_orderkey", "INTEGER"),
            ("o_custkey", "INTEGER"),
            ("o_orderstatus", "VARCHAR(1)"),
            ("o_totalprice", "DECIMAL(15,2)"),
            ("o_orderdate", "DATE"),
            ("o_orderpriority", "VARCHAR(15)"),
            ("o_clerk", "VARCHAR(15)"),
            ("o_shippriority", "INTEGER"),
            ("o_comment", "VARCHAR(79)"),
        ],
        key: "o_orderkey",
        indexes: &["o_custkey", "o_orderdate"],
    },
    Table {
        name: "lineitem",
        columns: &[
            ("l_orderkey", "INTEGER"),
            ("l_partkey", "INTEGER"),
            ("l_suppkey", "INTEGER"),
            ("l_linenumber", "INTEGER"),
            ("l_quantity", "DECIMAL(15,2)"),
            ("l_extendedprice", "DECIMAL(15,2)"),
            ("l_discount", "DECIMAL(15,2)"),
            ("l_tax", "DECIMAL(15,2)"),
            ("l_returnflag", "VARCHAR(1)"),
            ("l_linestatus", "VARCHAR(1)"),
            ("l_shipdate", "DATE"),
            ("l_commitdate", "DATE"),
            ("l_receiptdate", "DATE"),
            ("l_shipinstruct", "VARCHAR(25)"),
            ("l_shipmode", "VARCHAR(10)"),
            ("l_comment", "VARCHAR(44)"),
        ],
        key: "l_orderkey, l_linenumber",
        indexes: &["l_partkey", "l_suppkey", "l_shipdate"],
    },
];

/// The statements that create and fill the tables.
pub fn sql(scale: f64) -> String {
    let mut sql = String::new();
    for table in &TABLES {
        let columns = table.columns.iter();
        let columns = columns.map(|(name, of)| format!("{name} {of} NOT NULL"));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let (name, key) = (table.name, table.key);
        // Writing to a string cannot fail.
        let _ = writeln!(sql, "CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}));");
        match table.name {
            "region" => insert(&mut sql, table, RegionGenerator::new(scale, 1, 1).iter()),
            "nation" => insert(&mut sql, table, NationGenerator::new(scale, 1, 1).iter()),
            "supplier" => insert(&mut sql, table, SupplierGenerator::new(scale, 1, 1).iter()),
            "part" => insert(&mut sql, table, PartGenerator::new(scale, 1, 1).iter()),
            "partsupp" => insert(&mut sql, table, PartSuppGenerator::new(scale, 1, 1).iter()),
            "customer" => insert(&mut sql, table, CustomerGenerator::new(scale, 1, 1).iter()),
            "orders" => insert(&mut sql, table, OrderGenerator::new(scale, 1, 1).iter()),
            _ => insert(&mut sql, table, LineItemGenerator::new(scale, 1, 1).iter()),
        }
        for index in table.indexes {
            let _ = writeln!(sql, "CREATE INDEX {name}_{index} ON {name} ({index});");
        }
    }
    sql
}

/// Inserts records, given in the generator's own line format: values with a bar after each.
fn insert(sql: &mut String, table: &Table, records: impl Iterator<Item = impl Display>) {
    for (place, record) in records.enumerate() {
        let start = if place % BATCH == 0 {
            let end = if place == 0 { "" } else { ";\n" };
            format!("{end}INSERT INTO {} VALUES ", table.name)
        } else {
            ", ".to_owned()
        };
        sql.push_str(&start);
        let line = record.to_string();
        let values = line.trim_end_matches('|').split('|');
        let values = values.map(|value| format!("'{}'", value.replace('\'', "''")));
        sql.push('(');
        sql.push_str(&values.collect::<Vec<_>>().join(", "));
        sql.push(')');
    }
    sql.push_str(";\n");
}
