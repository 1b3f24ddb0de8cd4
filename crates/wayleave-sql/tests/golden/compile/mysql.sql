-- every row
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t ORDER BY t.`id` LIMIT 26

-- one record
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE t.`id` = ? ORDER BY t.`id` LIMIT 26
--   Integer(7)

-- text is bound, never written
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE (t.`na"me``` = ? AND CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) = CAST(? AS BINARY)) ORDER BY t.`id` LIMIT 26
--   Text("'; DROP TABLE t; -- \" ` \\")
--   Text("'; DROP TABLE t; -- \" ` \\")

-- text greater than a text with a NUL in it
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) > CAST(? AS BINARY) ORDER BY t.`id` LIMIT 26
--   Text("a\0b")

-- a beginning and a part
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE (CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) >= CAST(? AS BINARY) AND CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) < CAST(? AS BINARY)) AND LOCATE(CAST(? AS BINARY), CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY)) > 0 ORDER BY t.`id` LIMIT 26
--   Text("50%_")
--   Text("50%`")
--   Text("%")

-- any of, none of, none at all
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE ((t.`id` = ? OR 1 = 0) OR CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) NOT IN (CAST(? AS BINARY), CAST(? AS BINARY)) OR t.`na"me``` IS NULL) ORDER BY t.`id` LIMIT 26
--   Integer(1)
--   Text("a")
--   Text("b")

-- decimals, numbers, times and truth
SELECT t.`id`, t.`na"me```, t.`price`, (SELECT t.`active` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`at` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`day` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`ratio` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM `data``base`.`the "table`` '` AS t WHERE t.`price` > CAST(? AS DECIMAL(65, 30)) AND t.`ratio` < ? AND t.`day` <> ? AND t.`at` <= ? AND (t.`active` <> 0) = ? AND EXP(10000 * CASE WHEN (t.`price` > CAST(? AS DECIMAL(65, 30)) AND t.`ratio` < ? AND t.`day` <> ? AND t.`at` <= ? AND (t.`active` <> 0) = ?) THEN CASE WHEN (COALESCE(DAYOFMONTH(t.`day`) BETWEEN 1 AND DAYOFMONTH(LAST_DAY(t.`day`)), 0) AND COALESCE(DAYOFMONTH(t.`at`) BETWEEN 1 AND DAYOFMONTH(LAST_DAY(t.`at`)), 0)) THEN 0 ELSE 1 END ELSE 0 END) = 1 ORDER BY t.`id` LIMIT 26
--   Text("0.100000000000000000000000000000")
--   Real(0.5)
--   Date(0)
--   Datetime(1)
--   Integer(1)
--   Text("0.100000000000000000000000000000")
--   Real(0.5)
--   Date(0)
--   Datetime(1)
--   Integer(1)

-- a page by key
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE t.`id` > ? ORDER BY t.`id` LIMIT 26
--   Integer(7)

-- a page by two columns that are never NULL
SELECT t.`id`, t.`na"me```, t.`price`, (SELECT t.`small` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM `data``base`.`the "table`` '` AS t WHERE (t.`small` <= ? AND (t.`small` < ? OR (t.`small` = ? AND t.`id` < ?))) ORDER BY t.`small` DESC, t.`id` DESC LIMIT 26
--   Integer(3)
--   Integer(3)
--   Integer(3)
--   Integer(7)

-- a page by a column that may be NULL, downwards
SELECT t.`id`, t.`na"me```, t.`price`, (SELECT t.`at` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM `data``base`.`the "table`` '` AS t WHERE ((t.`at` < ? OR t.`at` IS NULL) OR (t.`at` = ? AND t.`id` > ?)) ORDER BY t.`at` DESC, t.`id` LIMIT 26
--   Datetime(1)
--   Datetime(1)
--   Integer(7)

-- a page after a NULL
SELECT t.`id`, t.`na"me```, t.`price` FROM `data``base`.`the "table`` '` AS t WHERE (1 = 0 OR (t.`na"me``` IS NULL AND t.`id` > ?)) ORDER BY CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) IS NULL, CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY), LENGTH(t.`na"me```), t.`id` LIMIT 26
--   Integer(7)

-- the first of each
SELECT c0 FROM (SELECT t.`id` AS c0, ROW_NUMBER() OVER (PARTITION BY t.`small` ORDER BY t.`id`) AS place, ROW_NUMBER() OVER ( ORDER BY t.`id`) AS position, CASE WHEN 1 = 1 THEN 1 ELSE 0 END AS later FROM `data``base`.`the "table`` '` AS t) AS r WHERE place <= 3 AND later = 1 ORDER BY position LIMIT 30

-- a count
SELECT COUNT(*), (SELECT t.`id` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM `data``base`.`the "table`` '` AS t WHERE t.`id` > ?
--   Integer(0)

-- measures of everything
SELECT COUNT(*) AS v0, COUNT(DISTINCT m1) AS v1, SUM(m2) AS v2, SUM(m3), COUNT(m3) AS v3, SUM(m4) AS v4, MIN(m5) AS v5, MAX(m6) AS v6, (SELECT t.`at` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`id` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`na"me``` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`price` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`ratio` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM (SELECT CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) AS m1, t.`id` AS m2, t.`price` AS m3, t.`ratio` AS m4, CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) AS m5, t.`at` AS m6 FROM `data``base`.`the "table`` '` AS t WHERE EXP(10000 * CASE WHEN (1 = 1) THEN CASE WHEN ((t.`at` IS NULL OR COALESCE(DAYOFMONTH(t.`at`) BETWEEN 1 AND DAYOFMONTH(LAST_DAY(t.`at`)), 0))) THEN 0 ELSE 1 END ELSE 0 END) = 1) AS g LIMIT 1

-- groups
SELECT k0 AS v0, k1 AS v1, SUM(m0), COUNT(m0) AS v2, (SELECT t.`active` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`id` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`na"me``` FROM `data``base`.`the "table`` '` AS t LIMIT 0), (SELECT t.`price` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM (SELECT CAST(CONVERT(t.`na"me``` USING utf8mb4) AS BINARY) AS k0, (t.`active` <> 0) AS k1, t.`price` AS m0 FROM `data``base`.`the "table`` '` AS t WHERE t.`id` > ?) AS g GROUP BY k0, k1 ORDER BY SIGN(SUM(m0)) * ((ABS(SUM(m0)) * 2000000 + COUNT(m0) - MOD(ABS(SUM(m0)) * 2000000 + COUNT(m0), (2 * COUNT(m0)))) / (2 * COUNT(m0))) DESC, k0 IS NULL, k0, k1 IS NULL, k1 LIMIT 11
--   Integer(0)

-- periods of a zone
SELECT k0 AS v0, COUNT(*) AS v1, (SELECT t.`at` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM (SELECT DATE_SUB(DATE_SUB(DATE(TIMESTAMPADD(SECOND, IF(t.`at` < ?, IF(t.`at` < ?, ?, ?), ?), t.`at`)), INTERVAL DAYOFMONTH(TIMESTAMPADD(SECOND, IF(t.`at` < ?, IF(t.`at` < ?, ?, ?), ?), t.`at`)) - 1 DAY), INTERVAL MOD(MONTH(TIMESTAMPADD(SECOND, IF(t.`at` < ?, IF(t.`at` < ?, ?, ?), ?), t.`at`)) - 1, 3) MONTH) AS k0 FROM `data``base`.`the "table`` '` AS t WHERE EXP(10000 * CASE WHEN (1 = 1) THEN CASE WHEN ((t.`at` IS NULL OR COALESCE(DAYOFMONTH(t.`at`) BETWEEN 1 AND DAYOFMONTH(LAST_DAY(t.`at`)), 0))) THEN 0 ELSE 1 END ELSE 0 END) = 1) AS g GROUP BY k0 ORDER BY k0 IS NULL, k0 LIMIT 11
--   Datetime(1729990800000000)
--   Datetime(1711846800000000)
--   Integer(3600)
--   Integer(7200)
--   Integer(3600)
--   Datetime(1729990800000000)
--   Datetime(1711846800000000)
--   Integer(3600)
--   Integer(7200)
--   Integer(3600)
--   Datetime(1729990800000000)
--   Datetime(1711846800000000)
--   Integer(3600)
--   Integer(7200)
--   Integer(3600)

-- hours of a zone
SELECT k0 AS v0, COUNT(*) AS v1, (SELECT t.`at` FROM `data``base`.`the "table`` '` AS t LIMIT 0) FROM (SELECT TIMESTAMPADD(MICROSECOND, -(SECOND(TIMESTAMPADD(SECOND, IF(t.`at` < ?, IF(t.`at` < ?, ?, ?), ?), t.`at`)) * 1000000 + MICROSECOND(TIMESTAMPADD(SECOND, IF(t.`at` < ?, IF(t.`at` < ?, ?, ?), ?), t.`at`)) + MINUTE(TIMESTAMPADD(SECOND, IF(t.`at` < ?, IF(t.`at` < ?, ?, ?), ?), t.`at`)) * 60000000), t.`at`) AS k0 FROM `data``base`.`the "table`` '` AS t WHERE EXP(10000 * CASE WHEN (1 = 1) THEN CASE WHEN ((t.`at` IS NULL OR COALESCE(DAYOFMONTH(t.`at`) BETWEEN 1 AND DAYOFMONTH(LAST_DAY(t.`at`)), 0))) THEN 0 ELSE 1 END ELSE 0 END) = 1) AS g GROUP BY k0 ORDER BY k0 IS NULL, k0 LIMIT 11
--   Datetime(1729990800000000)
--   Datetime(1711846800000000)
--   Integer(3600)
--   Integer(7200)
--   Integer(3600)
--   Datetime(1729990800000000)
--   Datetime(1711846800000000)
--   Integer(3600)
--   Integer(7200)
--   Integer(3600)
--   Datetime(1729990800000000)
--   Datetime(1711846800000000)
--   Integer(3600)
--   Integer(7200)
--   Integer(3600)

