-- every row
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t ORDER BY t."id" LIMIT 26

-- one record
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE t."id" = ?1 ORDER BY t."id" LIMIT 26
--   Integer(7)

-- text is bound, never written
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE t."na""me`" = ?1 COLLATE BINARY ORDER BY t."id" LIMIT 26
--   Text("'; DROP TABLE t; -- \" ` \\")

-- text greater than a text with a NUL in it
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE t."na""me`" > ?1 COLLATE BINARY ORDER BY t."id" LIMIT 26
--   Text("a\0b")

-- a beginning and a part
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE (t."na""me`" >= ?1 COLLATE BINARY AND t."na""me`" < ?2 COLLATE BINARY) AND instr(t."na""me`" COLLATE BINARY, ?3) > 0 ORDER BY t."id" LIMIT 26
--   Text("50%_")
--   Text("50%`")
--   Text("%")

-- any of, none of, none at all
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE ((t."id" = ?1 OR 1 = 0) OR t."na""me`" COLLATE BINARY NOT IN (?2 COLLATE BINARY, ?3 COLLATE BINARY) OR t."na""me`" IS NULL) ORDER BY t."id" LIMIT 26
--   Integer(1)
--   Text("a")
--   Text("b")

-- decimals, numbers, times and truth
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE t."price" > ?1 AND t."ratio" < ?2 AND t."day" <> ?3 COLLATE BINARY AND wayleave_datetime(t."at", ?4) <= ?5 AND wayleave_boolean(t."active", ?6) = ?7 AND wayleave_decided(CASE WHEN (t."price" > ?8 AND t."ratio" < ?9 AND t."day" <> ?10 COLLATE BINARY AND wayleave_datetime(t."at", ?11) <= ?12 AND wayleave_boolean(t."active", ?13) = ?14) THEN CASE WHEN ((typeof(t."price") = 'integer' OR wayleave_fits(t."price", 'decimal')) AND (typeof(t."ratio") = 'integer' OR wayleave_fits(t."ratio", 'number')) AND wayleave_fits(t."day", 'date') AND wayleave_fits(t."at", 'datetime') AND wayleave_fits(t."active", 'boolean')) THEN 0 ELSE 1 END ELSE 0 END) ORDER BY t."id" LIMIT 26
--   Real(0.1)
--   Real(0.5)
--   Text("1970-01-01")
--   Integer(1)
--   Integer(1)
--   Integer(1)
--   Integer(1)
--   Real(0.1)
--   Real(0.5)
--   Text("1970-01-01")
--   Integer(1)
--   Integer(1)
--   Integer(1)
--   Integer(1)

-- a page by key
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE t."id" > ?1 ORDER BY t."id" LIMIT 26
--   Integer(7)

-- a page by two columns that are never NULL
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE (t."small", t."id") < (?1, ?2) ORDER BY t."small" DESC, t."id" DESC LIMIT 26
--   Integer(3)
--   Integer(7)

-- a page by a column that may be NULL, downwards
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE ((wayleave_datetime(t."at", -9223372036854775808) < ?1 OR t."at" IS NULL) OR (wayleave_datetime(t."at", ?2) = ?3 AND t."id" > ?4)) ORDER BY wayleave_datetime(t."at") DESC, t."id" LIMIT 26
--   Integer(1)
--   Integer(1)
--   Integer(1)
--   Integer(7)

-- a page after a NULL
SELECT t."id", t."na""me`", t."price" FROM "the ""table` '" AS t WHERE (1 = 0 OR (t."na""me`" IS NULL AND t."id" > ?1)) ORDER BY t."na""me`" COLLATE BINARY NULLS LAST, t."id" LIMIT 26
--   Integer(7)

-- the first of each
SELECT c0 FROM (SELECT t."id" AS c0, ROW_NUMBER() OVER (PARTITION BY t."small" ORDER BY t."id") AS place, ROW_NUMBER() OVER ( ORDER BY t."id") AS position, CASE WHEN 1 = 1 THEN 1 ELSE 0 END AS later FROM "the ""table` '" AS t) AS r WHERE place <= 3 AND later = 1 ORDER BY position LIMIT 30

-- a count
SELECT COUNT(*) FROM "the ""table` '" AS t WHERE t."id" > ?1 AND wayleave_decided(CASE WHEN (t."id" > ?2) THEN CASE WHEN ((typeof(t."id") = 'integer' OR wayleave_fits(t."id", 'integer'))) THEN 0 ELSE 1 END ELSE 0 END)
--   Integer(0)
--   Integer(0)

-- measures of everything
SELECT COUNT(*) AS v0, COUNT(DISTINCT m1 COLLATE BINARY) AS v1, wayleave_sum(m2) AS v2, wayleave_sum(m3), COUNT(m3) AS v3, SUM(m4) AS v4, MIN(m5 COLLATE BINARY) AS v5, MAX(m6) AS v6 FROM (SELECT t."na""me`" COLLATE BINARY AS m1, CASE WHEN typeof(t."id") = 'integer' THEN t."id" ELSE wayleave_integer(t."id") END AS m2, t."price" AS m3, CASE WHEN typeof(t."ratio") = 'real' THEN t."ratio" ELSE wayleave_number(t."ratio") END AS m4, t."na""me`" COLLATE BINARY AS m5, wayleave_datetime(t."at") AS m6 FROM "the ""table` '" AS t WHERE wayleave_decided(CASE WHEN (1 = 1) THEN CASE WHEN ((t."at" IS NULL OR wayleave_fits(t."at", 'datetime'))) THEN 0 ELSE 1 END ELSE 0 END)) AS g LIMIT 1

-- groups
SELECT k0 AS v0, k1 AS v1, wayleave_sum(m0), COUNT(m0) AS v2 FROM (SELECT t."na""me`" COLLATE BINARY AS k0, wayleave_boolean(t."active") AS k1, t."price" AS m0 FROM "the ""table` '" AS t WHERE t."id" > ?1 AND wayleave_decided(CASE WHEN (t."id" > ?2) THEN CASE WHEN ((typeof(t."id") = 'integer' OR wayleave_fits(t."id", 'integer'))) THEN 0 ELSE 1 END ELSE 0 END)) AS g GROUP BY k0 COLLATE BINARY, k1 ORDER BY wayleave_decimal(wayleave_mean(wayleave_sum(m0), COUNT(m0))) DESC, k0 COLLATE BINARY NULLS LAST, k1 NULLS LAST LIMIT 11
--   Integer(0)
--   Integer(0)

-- periods of a zone
SELECT k0 AS v0, COUNT(*) AS v1 FROM (SELECT wayleave_period(wayleave_datetime(t."at"), ?1, ?2) AS k0 FROM "the ""table` '" AS t) AS g GROUP BY k0 ORDER BY k0 NULLS LAST LIMIT 11
--   Text("quarter")
--   Text("Europe/Berlin")

-- hours of a zone
SELECT k0 AS v0, COUNT(*) AS v1 FROM (SELECT wayleave_period(wayleave_datetime(t."at"), ?1, ?2) AS k0 FROM "the ""table` '" AS t) AS g GROUP BY k0 ORDER BY k0 NULLS LAST LIMIT 11
--   Text("hour")
--   Text("Europe/Berlin")

