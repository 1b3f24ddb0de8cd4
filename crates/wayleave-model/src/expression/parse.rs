//! Parses expressions.
//!
//! Precedence, lowest first: `or`, `and`, `not`, comparisons and `is null`, `||`, `+ -`, `* /`,
//! unary `-`.

use std::ops::Range;

use super::lex::{Token, TokenKind, tokens};
use super::{
    Arithmetic, Comparison, ExpressionError, Function, MAX_HOPS, MAX_NESTING, Operator, Syntax,
    SyntaxKind,
};
use crate::nearest::nearest;

/// Reserved words, which cannot be names.
const WORDS: &[&str] = &["and", "or", "not", "is", "null", "true", "false"];

/// Parses an expression.
pub fn parse(text: &str) -> Result<Syntax, ExpressionError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
        end: text.len(),
    };
    let syntax = parser.disjunction()?;
    match parser.peek() {
        None => Ok(syntax),
        Some(token) => Err(parser.unexpected(token)),
    }
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    /// Length of the text, in bytes.
    end: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token { kind: TokenKind::Sign(it), .. }) if *it == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token { kind: TokenKind::Word(it), .. }) if it.eq_ignore_ascii_case(word))
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    fn unexpected(&self, token: &Token) -> ExpressionError {
        let error = ExpressionError::new("this does not belong here", token.span.clone());
        match &token.kind {
            TokenKind::Sign("=") if self.at > 1 => error.hint("compare once; join with `and`"),
            TokenKind::Word(_) | TokenKind::Text(_) | TokenKind::Number(_) => {
                error.hint("an operator is missing before it: `+ - * / ||`, a comparison, `and`")
            }
            TokenKind::Sign(_) => error,
        }
    }

    fn missing(&self, what: &str) -> ExpressionError {
        let span = match self.peek() {
            Some(token) => token.span.clone(),
            None => self.end..self.end,
        };
        ExpressionError::new(format!("{what} is missing here"), span)
    }

    /// Limits the nesting depth, so that no text can exhaust the stack.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        if self.depth == MAX_NESTING {
            let span = self.peek().map_or(self.end..self.end, |it| it.span.clone());
            let message = format!("the expression is nested more than {MAX_NESTING} deep");
            return Err(ExpressionError::new(message, span)
                .hint("move a part into a computed field of its own"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses operands of one precedence, joined from the left. Limits their number, because the
    /// tree is as deep as the chain is long.
    fn chain(
        &mut self,
        operator: impl Fn(&mut Self) -> Option<Operator>,
        part: impl Fn(&mut Self) -> Result<Syntax, ExpressionError>,
    ) -> Result<Syntax, ExpressionError> {
        let mut left = part(self)?;
        let mut joined = 0;
        while let Some(operator) = operator(self) {
            joined += 1;
            if joined > MAX_NESTING {
                let message = format!("more than {MAX_NESTING} parts are joined in a row");
                return Err(ExpressionError::new(message, left.span)
                    .hint("move a part into a computed field of its own"));
            }
            let right = part(self)?;
            left = binary(operator, left, right);
        }
        Ok(left)
    }

    fn disjunction(&mut self) -> Result<Syntax, ExpressionError> {
        self.nested(|parser| {
            parser.chain(
                |it| it.take_word("or").then_some(Operator::Or),
                Self::conjunction,
            )
        })
    }

    fn conjunction(&mut self) -> Result<Syntax, ExpressionError> {
        self.chain(
            |it| it.take_word("and").then_some(Operator::And),
            Self::negation,
        )
    }

    fn negation(&mut self) -> Result<Syntax, ExpressionError> {
        let start = self.peek().map_or(self.end, |it| it.span.start);
        if self.take_word("not") {
            let inner = self.nested(Self::negation)?;
            let span = start..inner.span.end;
            return Ok(Syntax {
                kind: SyntaxKind::Not(Box::new(inner)),
                span,
            });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Syntax, ExpressionError> {
        let left = self.concatenation()?;
        if self.take_word("is") {
            let negated = self.take_word("not");
            let end = self.peek().map_or(self.end, |it| it.span.end);
            if !self.take_word("null") {
                return Err(self
                    .missing("`null`")
                    .hint("only `is null` and `is not null`"));
            }
            let span = left.span.start..end;
            return Ok(Syntax {
                kind: SyntaxKind::IsNull {
                    value: Box::new(left),
                    negated,
                },
                span,
            });
        }
        let signs = [
            ("=", Comparison::Eq),
            ("!=", Comparison::Ne),
            ("<>", Comparison::Ne),
            (">=", Comparison::Gte),
            (">", Comparison::Gt),
            ("<=", Comparison::Lte),
            ("<", Comparison::Lt),
        ];
        for (sign, comparison) in signs {
            if self.take_sign(sign) {
                let right = self.concatenation()?;
                return Ok(binary(Operator::Compare(comparison), left, right));
            }
        }
        Ok(left)
    }

    fn concatenation(&mut self) -> Result<Syntax, ExpressionError> {
        self.chain(
            |it| it.take_sign("||").then_some(Operator::Concat),
            Self::sum,
        )
    }

    fn sum(&mut self) -> Result<Syntax, ExpressionError> {
        let signs = [("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];
        self.chain(|it| it.arithmetic(signs), Self::product)
    }

    fn product(&mut self) -> Result<Syntax, ExpressionError> {
        let signs = [("*", Arithmetic::Multiply), ("/", Arithmetic::Divide)];
        self.chain(|it| it.arithmetic(signs), Self::unary)
    }

    fn arithmetic(&mut self, signs: [(&str, Arithmetic); 2]) -> Option<Operator> {
        let mut signs = signs.into_iter();
        let found = signs.find(|(sign, _)| self.take_sign(sign));
        found.map(|(_, arithmetic)| Operator::Arithmetic(arithmetic))
    }

    fn unary(&mut self) -> Result<Syntax, ExpressionError> {
        let start = self.peek().map_or(self.end, |it| it.span.start);
        if self.take_sign("-") {
            let inner = self.nested(Self::unary)?;
            let span = start..inner.span.end;
            return Ok(Syntax {
                kind: SyntaxKind::Negate(Box::new(inner)),
                span,
            });
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Syntax, ExpressionError> {
        let Some(token) = self.peek() else {
            return Err(self.missing("a value"));
        };
        self.at += 1;
        let kind = match &token.kind {
            TokenKind::Text(text) => SyntaxKind::Text(text.clone()),
            TokenKind::Number(number) => SyntaxKind::Number(number.clone()),
            TokenKind::Word(word) => return self.word(word, token.span.clone()),
            TokenKind::Sign("(") => {
                let mut inner = self.disjunction()?;
                let end = self.closing()?;
                inner.span = token.span.start..end;
                return Ok(inner);
            }
            TokenKind::Sign(_) => {
                self.at -= 1;
                return Err(self.missing("a value"));
            }
        };
        Ok(Syntax {
            kind,
            span: token.span.clone(),
        })
    }

    fn closing(&mut self) -> Result<usize, ExpressionError> {
        let end = self.peek().map_or(self.end, |it| it.span.end);
        if self.take_sign(")") {
            Ok(end)
        } else {
            Err(self.missing("`)`"))
        }
    }

    fn word(&mut self, word: &str, span: Range<usize>) -> Result<Syntax, ExpressionError> {
        let constant = match word.to_ascii_lowercase().as_str() {
            "true" => Some(SyntaxKind::Boolean(true)),
            "false" => Some(SyntaxKind::Boolean(false)),
            "null" => Some(SyntaxKind::Null),
            _ => None,
        };
        if let Some(kind) = constant {
            return Ok(Syntax { kind, span });
        }
        if self.take_sign("(") {
            return self.call(word, span);
        }
        if WORDS.contains(&word.to_ascii_lowercase().as_str()) {
            self.at -= 1;
            return Err(self.missing("a value"));
        }
        let mut path = vec![word.to_owned()];
        let mut end = span.end;
        while self.take_sign(".") {
            let Some(Token {
                kind: TokenKind::Word(name),
                span,
            }) = self.peek()
            else {
                return Err(self.missing("a name"));
            };
            self.at += 1;
            end = span.end;
            path.push(name.clone());
        }
        let span = span.start..end;
        if path.len() > MAX_HOPS + 1 {
            let message = format!("a path follows at most {MAX_HOPS} relations");
            return Err(ExpressionError::new(message, span));
        }
        Ok(Syntax {
            kind: SyntaxKind::Path(path),
            span,
        })
    }

    fn call(&mut self, name: &str, span: Range<usize>) -> Result<Syntax, ExpressionError> {
        let lower = name.to_ascii_lowercase();
        let Some(function) = Function::from_name(&lower) else {
            let names = || Function::ALL.iter().map(|it| it.name());
            let hint = if let Some(meant) = nearest(&lower, names()) {
                format!("did you mean `{meant}`?")
            } else {
                let all: Vec<_> = names().map(|it| format!("`{it}`")).collect();
                format!("there are {}", all.join(", "))
            };
            return Err(ExpressionError::new("there is no such function", span).hint(hint));
        };
        let mut arguments = Vec::new();
        // `count(*)` counts records, and so does `count()`.
        let is_count = lower == "count";
        let counts_records = is_count && self.take_sign("*");
        if !counts_records && !self.is_sign(")") {
            loop {
                arguments.push(self.disjunction()?);
                if arguments.len() > MAX_NESTING {
                    let message = format!("a function takes at most {MAX_NESTING} values");
                    return Err(ExpressionError::new(message, span));
                }
                if !self.take_sign(",") {
                    break;
                }
            }
        }
        let end = self.closing()?;
        Ok(Syntax {
            kind: SyntaxKind::Call {
                function,
                arguments,
            },
            span: span.start..end,
        })
    }
}

fn binary(operator: Operator, left: Syntax, right: Syntax) -> Syntax {
    let span = left.span.start..right.span.end;
    Syntax {
        kind: SyntaxKind::Binary {
            operator,
            left: Box::new(left),
            right: Box::new(right),
        },
        span,
    }
}
